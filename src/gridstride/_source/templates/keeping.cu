        (void)gridstride_post;
        gridstride::keep(gridstride::one_result(folded), gridstride_space, at, part);
