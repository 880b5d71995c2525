/**
 * Bounds the members, values and names of a JSON-RPC body. The SDKs read each of them several times, so they are counted in the bytes, before a
 * parser makes objects of them. It does not check that the bytes are JSON, because the parser does. Decision 0460 says why. The functions are pure.
 */
import { isWordAt, stringEnd } from '../../gateway/wire/json/json-bytes.ts'

/** Maximum number of members of `params`, and of `_meta` inside it. */
export const envelopeMembersMax = 64
/** Maximum number of members of any object. */
export const objectMembersMax = 1000
/**
 * Maximum number of values of a body, not counting the `arguments` of its messages. Members, items, objects and lists are values. The whole body has
 * another bound.
 */
export const envelopeValuesMax = 5000

/** Maximum bytes of a name of a member, and of a text outside of `arguments`, as JSON writes them. Errors and the SDKs repeat them several times. */
export const envelopeTextMaxBytes = 64 * 1024

/** Maximum depth. The parser has the same bound and refuses deeper bodies. */
const depthMax = 128
/** Maximum length in bytes of a known member name, when every character is written as an escape. */
const nameMaxBytes = 64

type Role = 'batch' | 'message' | 'params' | '_meta' | 'arguments' | 'other'

/** An open object or list. */
interface Open {
  readonly role: Role
  readonly isObject: boolean
  members: number
}

/** Returns a sentence that names the exceeded bound. Returns null when no bound is exceeded. */
export function excessOf(bytes: Uint8Array): string | null {
  const open: Open[] = []
  let top: Open | undefined
  let name: Role = 'other'
  let isNameNext = false
  let values = 1
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case 34: {
        const end = stringEnd(bytes, at + 1, bytes.length)
        if (end - at > envelopeTextMaxBytes && (isNameNext || top?.role !== 'arguments'))
          return `a name, or a text outside of "arguments", has more than ${envelopeTextMaxBytes} bytes`
        if (isNameNext) name = roleNamed(bytes, at + 1, end)
        isNameNext = false
        at = end
        break
      }
      case 58: {
        if (top === undefined) break
        const { role } = top
        top.members++
        if ((role === 'params' || role === '_meta') && top.members > envelopeMembersMax) return `${role} has more than ${envelopeMembersMax} members`
        if (top.members > objectMembersMax) return `an object has more than ${objectMembersMax} members`
        break
      }
      case 44:
        isNameNext = top?.isObject === true
        if (top?.role !== 'arguments') values++
        break
      case 91:
      case 123: {
        const isObject = bytes[at] === 123
        top = { role: roleOf(top, isObject, name), isObject, members: 0 }
        open.push(top)
        if (open.length > depthMax) return null
        isNameNext = isObject
        if (top.role !== 'arguments') values++
        break
      }
      case 93:
      case 125:
        open.pop()
        top = open.at(-1)
        isNameNext = false
        break
    }
    if (values > envelopeValuesMax) return `the body has more than ${envelopeValuesMax} values outside of "arguments"`
  }
  return null
}

/** Returns the role of an object or list. The role depends on the role of the parent, and on the name of the member that contains it. */
function roleOf(parent: Open | undefined, isObject: boolean, name: Role): Role {
  if (parent === undefined) return isObject ? 'message' : 'batch'
  if (parent.role === 'arguments') return 'arguments'
  if (parent.role === 'batch') return isObject ? 'message' : 'other'
  if (parent.role === 'message') return isObject && name === 'params' ? 'params' : 'other'
  if (parent.role === 'params') return isObject && (name === '_meta' || name === 'arguments') ? name : 'other'
  return 'other'
}

const names = (['params', '_meta', 'arguments'] as const).map(name => ({ name, bytes: Buffer.from(name) }))

/** Returns the role that a member's name gives to its value. The name may contain escapes. */
function roleNamed(bytes: Uint8Array, start: number, end: number): Role {
  if (end - start > nameMaxBytes) return 'other'
  const plain = names.find(each => isWordAt(bytes, start, end, each.bytes))
  if (plain !== undefined || !bytes.subarray(start, end).includes(92)) return plain?.name ?? 'other'
  const text = unescaped(Buffer.from(bytes.subarray(start, end)).toString('utf8'))
  return names.find(each => each.name === text)?.name ?? 'other'
}

function unescaped(text: string): string | null {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return null
  }
}
