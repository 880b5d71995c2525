/**
 * Writes a parsed JSON value as JSON.stringify does, and stops after about `charsMax` characters. The time and memory that it needs depend on
 * `charsMax`, not on the size of the value. The returned text is not complete JSON when it is longer than `charsMax`. Throws a RangeError for a
 * value that is nested too deeply.
 */
export function cutJson(value: unknown, charsMax: number): string {
  const parts: string[] = []
  let room = charsMax
  const put = (text: string): void => {
    parts.push(text)
    room -= text.length
  }
  const write = (each: unknown): void => {
    if (typeof each === 'string') put(JSON.stringify(each.length > room ? each.slice(0, Math.max(room, 0) + 1) : each))
    else if (Array.isArray(each)) writeAll('[', each.keys(), index => write(each[index]), ']')
    else if (typeof each === 'object' && each !== null) {
      const members = each as Readonly<Record<string, unknown>>
      writeAll(
        '{',
        keysOf(members),
        key => {
          write(key)
          put(':')
          write(members[key])
        },
        '}',
      )
    } else put(JSON.stringify(each))
  }
  const writeAll = <Key>(open: string, keys: Iterable<Key>, writeOne: (key: Key) => void, close: string): void => {
    put(open)
    let isFirst = true
    for (const key of keys) {
      if (room < 0) return
      if (!isFirst) put(',')
      isFirst = false
      writeOne(key)
    }
    put(close)
  }
  write(value)
  return parts.join('')
}

/** Returns the keys that JSON.stringify writes. */
function* keysOf(members: Readonly<Record<string, unknown>>): Generator<string> {
  for (const key in members) if (Object.hasOwn(members, key) && members[key] !== undefined) yield key
}
