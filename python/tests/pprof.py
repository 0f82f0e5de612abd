"""Decodes profiles of pprof (profile.proto), written from the description of the format alone.

It shares no code with what writes them, so that both would have to be wrong in the same way.
"""

import gzip


def fields(data):
    """The fields of a message: number and value, an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) != size:
                raise ValueError("field %d is cut off" % number)
        else:
            raise ValueError("field %d has wire type %d, which profile.proto does not use" % (number, kind))
        yield number, value


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _numbers(value):
    """A repeated number, packed or not."""
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        out.append(number)
    return out


def _signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def decode(path):
    """Types, samples and comments of a profile. A sample is (values, stack from leaf to root, labels)."""
    with open(path, "rb") as file:
        data = gzip.decompress(file.read())
    raw = {number: [] for number in range(1, 15)}
    for number, value in fields(data):
        raw[number].append(value)
    strings = [text.decode() for text in raw[6]]
    if not strings or strings[0] != "":
        raise ValueError("the first string must be empty")
    functions = {}
    for message in raw[5]:
        function = dict(fields(message))
        functions[function[1]] = (strings[function.get(2, 0)], strings[function.get(4, 0)])
    locations = {}
    for message in raw[4]:
        location = list(fields(message))
        identity = dict(location)[1]
        lines = [dict(fields(value)) for number, value in location if number == 4]
        locations[identity] = [(functions[line[1]], _signed(line.get(2, 0))) for line in lines]
    if 0 in functions or 0 in locations:
        raise ValueError("0 is no identity")
    types = [tuple(strings[dict(fields(message)).get(field, 0)] for field in (1, 2)) for message in raw[1]]
    samples = []
    for message in raw[2]:
        stack, values, labels = [], [], {}
        for number, value in fields(message):
            if number == 1:
                stack += [frame for identity in _numbers(value) for frame in locations[identity]]
            elif number == 2:
                values += [_signed(one) for one in _numbers(value)]
            elif number == 3:
                label = dict(fields(value))
                labels[strings[label[1]]] = strings[label.get(2, 0)]
        if len(values) != len(types):
            raise ValueError("a sample has %d values for %d types" % (len(values), len(types)))
        samples.append((tuple(values), tuple(stack), labels))
    comments = [strings[one] for value in raw[13] for one in _numbers(value)]
    return {"types": types, "samples": samples, "comments": comments}
