/** Approximate sizes of parsed JSON in V8 with 8-byte pointers, in bytes. Each counts the pointer to the value too. */
const stringBytes = 32
const numberBytes = 24
const arrayBytes = 48
const objectBytes = 64
/** A member of an object, without its key and its value. */
const memberBytes = 24
/** A key has at least this size, because keys that occur only once are not shared. */
const keyBytes = 24

/** Returns about how many bytes of memory a parsed JSON value occupies. This can be twenty times the length of its text. The work is linear in its values. */
export function keptBytesOf(value: unknown): number {
  let bytes = 0
  const left: unknown[] = [value]
  while (left.length > 0) {
    const each = left.pop()
    if (typeof each === 'string') bytes += stringBytes + textBytes(each)
    else if (typeof each !== 'object' || each === null) bytes += numberBytes
    else if (Array.isArray(each)) {
      bytes += arrayBytes
      for (const element of each) left.push(element)
    } else {
      bytes += objectBytes
      for (const key in each) {
        bytes += memberBytes + keyBytes + key.length
        left.push((each as Readonly<Record<string, unknown>>)[key])
      }
    }
  }
  return bytes
}

/** A character has one byte while all characters of its text are ASCII. Latin-1 texts count twice. */
const textBytes = (text: string): number => (Buffer.byteLength(text) === text.length ? text.length : 2 * text.length)
