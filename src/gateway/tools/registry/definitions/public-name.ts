import { createHash } from 'node:crypto'

/** Maximum length of a public name. Model providers take 64 characters, and some clients put a name of their own in front. */
const publicNameMaxChars = 50
/** Between the slug of the server and the name of the tool. A slug has no `_`, so the first occurrence always ends the slug. */
const separator = '__'
const suffixChars = 6
/** The form of a suffix that this file appends. A server's own name with this form gets a suffix too, so that no two names are alike. */
const suffixShape = /_[A-Z2-7]{6}$/
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/**
 * Returns the name under which callers see a tool. It depends on the slug of the server and the tool's own name only, so it stays the same whatever else
 * is registered. It has at most 50 characters of `A-Z a-z 0-9 _ -`. A name that is longer or has other characters is changed, and ends in `_` and six
 * characters of its hash. Decision 0784 says why.
 */
export function publicNameOf(slug: string, upstreamName: string): string {
  const roomChars = publicNameMaxChars - slug.length - separator.length
  const plain = upstreamName.replace(/[^A-Za-z0-9_-]/gu, '_')
  const fits = plain === upstreamName && plain.length <= roomChars && !suffixShape.test(plain)
  const name = fits ? plain : `${plain.slice(0, roomChars - suffixChars - 1)}_${suffixOf(upstreamName)}`
  return slug + separator + name
}

/** Returns the first 30 bits of the SHA-256 of a name, as six characters of base32. */
function suffixOf(name: string): string {
  const bits = createHash('sha256').update(name).digest().readUInt32BE(0) >>> 2
  return Array.from({ length: suffixChars }, (_, index) => base32[(bits >>> (5 * (suffixChars - 1 - index))) & 31]).join('')
}
