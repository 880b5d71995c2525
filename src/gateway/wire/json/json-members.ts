/** Finds and edits the members of a JSON object as bytes. Members that do not change stay exactly as they were written. */
import { memberPlacesOf, pieceBytes, pieceTurn } from './json-body.ts'
import { StringWalk } from './json-bytes.ts'
import { membersIn, noteMembers } from './json-doubles.ts'
import type { MemberPlaces } from './json-scan.ts'

/** One member of the outermost object. The numbers are offsets into the bytes that were read. */
export interface JsonMember {
  readonly name: string
  /** The offset of the name's first quote. */
  readonly start: number
  readonly valueStart: number
  /** The offset after the value. */
  readonly end: number
}

const quote = 34
const backslash = 92
const comma = 44
const closeBracket = 93
const colon = 58
const openBracket = 91
const openBrace = 123
const closeBrace = 125
/** The longest name that `membersInTurns` finds. */
const nameMaxBytes = 64

/**
 * Returns the members in their order, including those with equal names. The bytes must be a JSON object that was parsed before; for other bytes the result is
 * meaningless. The members of a long body are known from its scan, which takes turns of the event loop.
 */
export function topLevelMembers(bytes: Buffer): readonly JsonMember[] {
  return knownMembers(bytes) ?? foundMembers(bytes)
}

function foundMembers(bytes: Buffer): readonly JsonMember[] {
  const members: JsonMember[] = []
  let at = bytes.indexOf(123) + 1
  for (;;) {
    at = bytes.indexOf(quote, at)
    if (at === -1) return members
    const start = at
    const nameEnd = stringEnd(bytes, start)
    const valueStart = skipWhite(bytes, bytes.indexOf(colon, nameEnd) + 1)
    const end = valueEnd(bytes, valueStart)
    members.push({ name: nameOf(bytes.toString('utf8', start, nameEnd)), start, valueStart, end })
    at = skipWhite(bytes, end)
    if (bytes[at] !== comma) return members
    at++
  }
}

/**
 * Returns the values of the outermost members with these names, as JSON text. Of equal names the last one counts. The bytes need not be JSON, and they are
 * scanned in pieces, so they may be long. A name with escapes is not found.
 */
export async function membersInTurns(bytes: Buffer, names: ReadonlySet<string>): Promise<ReadonlyMap<string, Buffer>> {
  const scan = new MemberScan(bytes, names)
  while (!scan.to(scan.at + pieceBytes)) await pieceTurn()
  return scan.found
}

/** Searches for outermost members. The search can be done in pieces. */
class MemberScan {
  readonly found = new Map<string, Buffer>()
  /** The offset up to which the bytes are scanned. */
  at = 0
  readonly #bytes: Buffer
  readonly #names: ReadonlySet<string>
  readonly #strings: StringWalk
  #depth = 0
  #textFrom = 0
  #textTo = 0
  /** The name of the member whose value is being scanned. null: it is not searched for. */
  #name: string | null = null
  #valueFrom = 0

  constructor(bytes: Buffer, names: ReadonlySet<string>) {
    this.#bytes = bytes
    this.#names = names
    this.#strings = new StringWalk(bytes, bytes.length)
  }

  /** Continues to about that offset. Returns true if the object has ended or everything was scanned. */
  to(offset: number): boolean {
    const bytes = this.#bytes
    const stop = Math.min(offset, bytes.length)
    let { at } = this
    if (this.#strings.isInString) at = this.#stringEnd(at, stop)
    while (at < stop) {
      const byte = bytes[at++]
      if (byte === quote) {
        this.#textFrom = at
        at = this.#stringEnd(at, stop)
      } else if (byte === openBrace || byte === openBracket) this.#depth++
      else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#depth > 0) continue
        this.#valueEnds(at - 1)
        return true
      } else if (this.#depth === 1 && byte === colon) this.#valueBegins(at)
      else if (this.#depth === 1 && byte === comma) this.#valueEnds(at - 1)
    }
    this.at = at
    return at >= bytes.length
  }

  #stringEnd(from: number, stop: number): number {
    const at = this.#strings.to(from, stop)
    this.#textTo = at - 1
    return at
  }

  #valueBegins(at: number): void {
    // The names to find are short, so a longer name need not be decoded.
    const name = this.#textTo - this.#textFrom > nameMaxBytes ? '' : this.#bytes.toString('latin1', this.#textFrom, this.#textTo)
    this.#name = this.#names.has(name) ? name : null
    this.#valueFrom = at
  }

  #valueEnds(at: number): void {
    if (this.#name !== null) this.found.set(this.#name, this.#bytes.subarray(this.#valueFrom, at))
    this.#name = null
  }
}

/** Returns the positions of the elements of the array that begins at `start`. The bytes must be JSON that was parsed before. */
export function elementsAt(bytes: Buffer, start: number): readonly { readonly start: number; readonly end: number }[] {
  const elements: { start: number; end: number }[] = []
  let at = skipWhite(bytes, start + 1)
  while (at < bytes.length && bytes[at] !== closeBracket) {
    const end = valueEnd(bytes, at)
    elements.push({ start: at, end })
    at = skipWhite(bytes, end)
    if (bytes[at] === comma) at = skipWhite(bytes, at + 1)
  }
  return elements
}

/** A member of a body that was scanned. */
interface KnownMember extends JsonMember {
  /** The number of members of all objects in it, including itself. */
  readonly members: number
}

/** The members of bytes that `editMembers` has made of bytes whose members were known. */
const edited = new WeakMap<Buffer, readonly KnownMember[]>()

function knownMembers(bytes: Buffer): readonly KnownMember[] | undefined {
  const made = edited.get(bytes)
  if (made !== undefined) return made
  const known = memberPlacesOf(bytes)
  return known === undefined ? undefined : membersAt(bytes, known)
}

/** Reads the members at known places, from the last one to the first. The value of each ends before the next name. */
function membersAt(bytes: Buffer, { places, colons }: MemberPlaces): readonly KnownMember[] {
  const members: KnownMember[] = []
  let after = bytes.lastIndexOf(closeBrace)
  let colonsAfter = colons
  for (let at = places.length - 3; at >= 0; at -= 3) {
    const [start, valueFrom, colonsBefore] = places.slice(at, at + 3) as [number, number, number]
    const name = nameOf(bytes.toString('utf8', start, trimmedEnd(bytes, valueFrom - 1)))
    members.push({ name, start, valueStart: skipWhite(bytes, valueFrom), end: trimmedEnd(bytes, after), members: colonsAfter - colonsBefore })
    after = trimmedEnd(bytes, start) - 1
    colonsAfter = colonsBefore
  }
  return members.reverse()
}

/** Most names have no escapes. Reading a name with escapes takes ten times as long. */
const nameOf = (quoted: string): string => (quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1))

/**
 * Returns the object with some values replaced (JSON text) and some members removed (undefined). New names are added at the end. Of members with equal names
 * only the last one stays, because parsers use that one. Returns the same bytes if nothing changes.
 */
export function editMembers(bytes: Buffer, edits: ReadonlyMap<string, string | undefined>): Buffer {
  const known = knownMembers(bytes)
  const members: readonly JsonMember[] = known ?? foundMembers(bytes)
  const last = new Map(members.map(member => [member.name, member]))
  const added = [...edits].filter(([name, text]) => text !== undefined && !last.has(name))
  const isSame = added.length === 0 && last.size === members.length && ![...edits.keys()].some(name => last.has(name))
  if (isSame) return bytes
  const parts: (Buffer | string)[] = []
  const put = (text: Buffer | string): void => void parts.push(parts.length === 0 ? '{' : ',', text)
  // Adjacent members that do not change are copied together, so even a body with a million members is copied in a few pieces.
  let runStart = -1
  let runEnd = -1
  const endRun = (): void => {
    if (runStart !== -1) put(bytes.subarray(runStart, runEnd))
    runStart = -1
  }
  for (const member of members) {
    const text = edits.get(member.name)
    const isKept = last.get(member.name) === member
    if (isKept && !edits.has(member.name)) {
      if (runStart === -1) runStart = member.start
      runEnd = member.end
      continue
    }
    endRun()
    if (isKept && text !== undefined) {
      put(bytes.subarray(member.start, member.valueStart))
      parts.push(text)
    }
  }
  endRun()
  for (const [name, text] of added) put(`${JSON.stringify(name)}:${text ?? ''}`)
  const made = Buffer.concat([...(parts.length === 0 ? ['{'] : parts), '}'].map(part => (typeof part === 'string' ? Buffer.from(part) : part)))
  if (known !== undefined) noteEdited(made, known, edits, member => last.get(member.name) === member)
  return made
}

/** Notes the members of edited bytes, so that the next edit need not search for them. `isKept` is false for a member that a later one overwrites. */
function noteEdited(
  made: Buffer,
  before: readonly KnownMember[],
  edits: ReadonlyMap<string, string | undefined>,
  isKept: (member: KnownMember) => boolean,
): void {
  const after: KnownMember[] = []
  const put = (name: string, start: number, nameBytes: number, valueBytes: number, members: number): void =>
    void after.push({ name, start, valueStart: start + nameBytes, end: start + nameBytes + valueBytes, members })
  const putText = (name: string, nameBytes: number, text: string): void =>
    put(name, (after.at(-1)?.end ?? 0) + 1, nameBytes, Buffer.byteLength(text), 1 + membersIn(Buffer.from(text)))
  // Between two members that were copied together there is what was there before. Between all others there is a comma.
  let copied: KnownMember | null = null
  for (const member of before) {
    const { name, start, valueStart, end } = member
    const isEdited = edits.has(name)
    const text = edits.get(name)
    if (isKept(member)) {
      const gapBytes = copied === null ? 1 : start - copied.end
      if (!isEdited) put(name, (after.at(-1)?.end ?? 0) + gapBytes, valueStart - start, end - valueStart, member.members)
      else if (text !== undefined) putText(name, valueStart - start, text)
    }
    copied = isKept(member) && !isEdited ? member : null
  }
  const names = new Set(before.map(({ name }) => name))
  for (const [name, text] of edits) if (text !== undefined && !names.has(name)) putText(name, Buffer.byteLength(JSON.stringify(name)) + 1, text)
  edited.set(made, after)
  noteMembers(
    made,
    after.reduce((sum, { members }) => sum + members, 0),
  )
}

/**
 * The first bytes of a string are read one by one, up to this number. After that a native search begins, because starting a search costs as much as reading
 * this many bytes.
 */
const stringWalkBytes = 48

/** Returns the offset after the closing quote of the string that begins at `start`. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length) {
    const stop = Math.min(at + stringWalkBytes, bytes.length)
    while (at < stop) {
      const byte = bytes[at]
      if (byte === quote) return at + 1
      at += byte === backslash ? 2 : 1
    }
    const found = bytes.indexOf(quote, at)
    if (found === -1) return bytes.length
    let slashes = 0
    while (found - 1 - slashes >= at && bytes[found - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return found + 1
    at = found + 1
  }
  return bytes.length
}

/** Returns the offset after the value that begins at `start`. */
function valueEnd(bytes: Buffer, start: number): number {
  let depth = 0
  let at = start
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === quote) {
      at = stringEnd(bytes, at)
      if (depth === 0) return at
      continue
    }
    if (byte === 123 || byte === 91) depth++
    else if (byte === 125 || byte === 93) {
      if (depth === 0) return trimmedEnd(bytes, at)
      depth--
      if (depth === 0) return at + 1
    } else if (byte === comma && depth === 0) return trimmedEnd(bytes, at)
    at++
  }
  return at
}

/** Excludes the white space after a number or a word from its value. */
function trimmedEnd(bytes: Buffer, end: number): number {
  let at = end
  while (isWhite(bytes[at - 1])) at--
  return at
}

function skipWhite(bytes: Buffer, from: number): number {
  let at = from
  while (isWhite(bytes[at])) at++
  return at
}

const isWhite = (byte: number | undefined): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9
