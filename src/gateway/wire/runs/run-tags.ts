/** Reads the tags of a call: names and values that its caller chose, such as the number of a pull request. Decision 0855 gives the reasons. */
import { fail } from '../../../platform/errors.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The header with tags. */
export const tagsHeader = 'x-br-tags'

/** The most tags of a call. */
export const tagsMax = 8
const keyShape = /^[a-z][a-z0-9_]{0,31}$/
/** A value has no comma, because a comma ends it, and no spaces at its ends. */
const valueShape = /^(?! )[\x20-\x2b\x2d-\x7e]{1,64}(?<! )$/
const baggagePrefix = 'br.tag.'

/** The value of a report for runs without a tag. No tag has it, so that both cannot be mistaken for each other. */
export const noTag = '(none)'

/** Returns true when the text can be the key of a tag. */
export const isTagKey = (text: string): boolean => keyShape.test(text)

/** Returns true when the text can be the value of a tag. */
export const isTagValue = (text: string): boolean => valueShape.test(text) && text !== noTag

/**
 * Returns the tags that the headers give, as a JSON object of strings in the order of their keys. Null when there are none. The header comes before baggage.
 * Throws `bad_request`.
 */
export function tagsOf(headers: Headers): string | null {
  const sent = headers[tagsHeader]
  const baggage = headers['baggage']
  const isInBaggage = typeof baggage === 'string' && baggage.includes(baggagePrefix)
  if (!isInBaggage && (sent === undefined || sent === '')) return null
  const tags = new Map<string, string>()
  if (sent !== undefined) for (const pair of (typeof sent === 'string' ? sent : sent.join(',')).split(',')) addPair(tags, pair)
  if (isInBaggage) addBaggage(tags, baggage)
  if (tags.size > tagsMax) throw invalid(`a call has at most ${tagsMax} tags`)
  return tags.size === 0 ? null : JSON.stringify(Object.fromEntries([...tags].sort(([a], [b]) => (a < b ? -1 : 1))))
}

function addPair(tags: Map<string, string>, pair: string): void {
  if (pair.trim() === '') return
  const at = pair.indexOf('=')
  const key = at < 0 ? pair.trim() : pair.slice(0, at).trim()
  if (tags.has(key)) throw invalid(`the tag ${key} is there twice`)
  set(tags, key, at < 0 ? '' : pair.slice(at + 1).trim())
}

function addBaggage(tags: Map<string, string>, baggage: string): void {
  const ofHeader = new Set(tags.keys())
  for (const member of baggage.split(',')) {
    const [pair = ''] = member.split(';', 1)
    const at = pair.indexOf('=')
    const name = at < 0 ? '' : pair.slice(0, at).trim()
    if (!name.startsWith(baggagePrefix)) continue
    const key = name.slice(baggagePrefix.length)
    if (!ofHeader.has(key)) set(tags, key, decoded(pair.slice(at + 1).trim()))
  }
}

function set(tags: Map<string, string>, key: string, value: string): void {
  if (!isTagKey(key)) throw invalid('a key has 1 to 32 small letters, digits and underscores, and begins with a letter')
  if (!isTagValue(value)) throw invalid(`the value of ${key} must have 1 to 64 printable ASCII characters without a comma, and must not be ${noTag}`)
  tags.set(key, value)
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    // The value is not percent-encoded.
    return value
  }
}

const invalid = (why: string) => fail('bad_request', { message: `${tagsHeader}: ${why}. Write tags as pr=1234, repo=acme/app.` })
