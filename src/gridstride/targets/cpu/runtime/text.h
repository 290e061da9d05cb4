// Building messages in a fixed buffer.
#ifndef GRIDSTRIDE_RUNTIME_TEXT_H
#define GRIDSTRIDE_RUNTIME_TEXT_H

namespace gridstride {

// Of code that runs when something went wrong: small rather than fast, also to compile.
#define GRIDSTRIDE_COLD __attribute__((cold, noinline))

class Text {
public:
    template <unsigned long size>
    explicit Text(char (&buffer)[size]) : buffer(buffer), capacity(size - 1) {
        buffer[0] = 0;
    }

    GRIDSTRIDE_COLD Text& operator<<(const char* part) {
        while (*part) append(*part++);
        return *this;
    }
    GRIDSTRIDE_COLD Text& operator<<(unsigned long number) {
        char digits[20];
        unsigned count = 0;
        do digits[count++] = char('0' + number % 10);
        while (number /= 10);
        while (count) append(digits[--count]);
        return *this;
    }
    Text& operator<<(unsigned number) { return *this << static_cast<unsigned long>(number); }
    GRIDSTRIDE_COLD Text& hexadecimal(unsigned long number) {
        *this << "0x";
        int shift = 60;
        while (shift && !(number >> shift)) shift -= 4;
        for (; shift >= 0; shift -= 4) append("0123456789abcdef"[number >> shift & 15]);
        return *this;
    }

private:
    char* buffer;
    unsigned long capacity, length = 0;

    void append(char character) {
        if (length == capacity) return;
        buffer[length++] = character;
        buffer[length] = 0;
    }
};

}  // namespace gridstride
#endif
