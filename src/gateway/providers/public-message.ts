import type { Secret } from '../../platform/security/secret.ts'
import { roomBehind } from '../wire/json/json-room.ts'
import { boundedObject } from '../wire/json/json-texts.ts'

/** Maximum length of a provider's message that is passed on. A longer message is cut. */
const messageMaxChars = 300
/**
 * Maximum length of an error message that is compared with the request. It is twice the length that is passed on, because replacing a quote makes the
 * message shorter.
 */
const comparedMaxChars = 600
/** Maximum length of a quote that is searched for in one piece. V8's search takes quadratic time for longer texts. */
const quoteMaxChars = 200
/** Maximum number of words that are joined to form the beginning of a quote. */
const quoteStartWords = 24
/**
 * Maximum length of the request's text for the comparison. The comparison takes time. For a longer request, the error is passed on without the
 * provider's words.
 */
const comparedContentMaxChars = 256 * 1024
/** Minimum length of a quote. Words of this length that also occur in the request count as quoted from it. */
const quoteMinChars = 12

/**
 * Returns a provider's own sentence about its failure, for the caller. The sentence is short. It contains nothing that looks like a credential, and
 * no quote from the request. Error texts appear in logs and tickets, and a prompt must not appear there.
 */
export function publicMessage(text: string, credential: Secret | null, body: Readonly<Record<string, unknown>>): string {
  const secret = credential?.reveal() ?? ''
  // The cut allows for the length of the credential, because a cut inside the credential would leave a part of it.
  let message = sentenceOf(text).slice(0, comparedMaxChars + secret.length)
  if (secret !== '') message = message.replaceAll(secret, '[secret]')
  message = message.slice(0, comparedMaxChars)
  message = message.replace(/\b(?:sk|br|gsk|xai|key|pk|rk)-[A-Za-z0-9_*.-]{6,}/g, '[secret]').replace(/[^\x21-\x7e\u00a1-\uffff]+/g, ' ')
  const content = contentOf(body)
  message = content === null ? '[…]' : withoutQuotes(message, content)
  // JSON in the database cannot contain an unpaired surrogate. The cut or the provider may produce one.
  return (message.length > messageMaxChars ? `${message.slice(0, messageMaxChars)}…` : message).toWellFormed()
}

/** Returns the message field of an error body, or the text itself. */
function sentenceOf(text: string): string {
  const value = boundedObject(text)
  if (value === null) return text
  const error: unknown = 'error' in value ? value['error'] : value
  if (typeof error === 'string') return error
  if (typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string') return error.message
  return text
}

/** All fields of any API in which the user may have written text. */
const contentNames = [
  ...['messages', 'input', 'prompt', 'system', 'instructions', 'tools', 'text', 'response_format', 'metadata', 'user', 'query', 'documents'],
  ...['contents', 'content', 'requests', 'systemInstruction', 'system_instruction', 'generationConfig', 'generation_config'],
]

/** Returns all text that the user may have written. Returns null when the text is too long or nested too deeply to be searched. */
function contentOf(body: Readonly<Record<string, unknown>>): string | null {
  // The size is checked first, so that a large body is not serialised for nothing.
  let left = comparedContentMaxChars
  for (const name of contentNames) if (left >= 0) left = roomBehind(body[name], left)
  if (left < 0) return null
  try {
    const content = JSON.stringify(contentNames.map(name => body[name]))
    return content.length > comparedContentMaxChars ? null : content.toLowerCase()
  } catch {
    return null
  }
}

/**
 * Replaces quotes: the longest runs of words that also occur in the content. It searches the content at most twice for each word. A message has at
 * most half as many words as characters, so even a hostile message takes only some milliseconds.
 */
function withoutQuotes(message: string, content: string): string {
  const words = message.split(' ').filter(word => word !== '')
  const run = (at: number, end: number): string => plain(words.slice(at, end).join(' '))
  const kept: string[] = []
  for (let at = 0; at < words.length; ) {
    let end = at + 1
    while (end < words.length && end - at < quoteStartWords && run(at, end).length < quoteMinChars) end++
    const begin = run(at, end)
    const isQuote = begin.length >= quoteMinChars && content.includes(begin.slice(0, quoteMaxChars))
    while (isQuote && end < words.length && isSearched(run(at, end + 1)) && content.includes(run(at, end + 1))) end++
    if (!isQuote) kept.push(words[at] ?? '')
    else if (kept.at(-1) !== '[…]') kept.push('[…]')
    at = isQuote ? end : at + 1
  }
  return kept.join(' ')
}

const isSearched = (run: string): boolean => run.length <= quoteMaxChars

/** Removes the quotation marks and punctuation that a provider puts around a quote. */
function plain(text: string): string {
  return text.toLowerCase().replace(/^[\s"'`([{<]+|[\s"'`)\]}>.,:;!?]+$/g, '')
}
