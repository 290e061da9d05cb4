        if (gridstride_space.parts == 1) gridstride::assign(gridstride_post, folded, gridstride_space, at$results);
        else gridstride::keep(folded, gridstride_space, at, part);
