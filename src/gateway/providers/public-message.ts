import type { Secret } from '../../platform/security/secret.ts'
import { roomBehind } from '../wire/json/json-room.ts'
import { boundedObject } from '../wire/json/json-texts.ts'

/** The longest message of a provider that is passed on. A longer one is cut. */
const messageMaxChars = 300
/** The longest part of an error message that is compared with the request: twice what is passed on, because a quote becomes shorter. */
const comparedMaxChars = 600
/** The longest quote that is searched for in one piece. The search of V8 takes quadratic time for a longer text. */
const quoteMaxChars = 200
/** The most words that are joined until they are long enough to be a quote. */
const quoteStartWords = 24
/** Requests with more text than this are not compared, because that takes time. Their errors are passed on without the provider's words. */
const comparedContentMaxChars = 256 * 1024
/** A run of words of this length that also occurs in the request counts as a quote from it. */
const quoteMinChars = 12

/**
 * Returns a provider's own sentence about its failure, for the caller. It is short, and has nothing that looks like a credential or quotes the request. Error
 * texts appear in logs and tickets, and a prompt must not appear there.
 */
export function publicMessage(text: string, credential: Secret | null, body: Readonly<Record<string, unknown>>): string {
  const secret = credential?.reveal() ?? ''
  // A cut inside of the credential would leave a part of it.
  let message = sentenceOf(text).slice(0, comparedMaxChars + secret.length)
  if (secret !== '') message = message.replaceAll(secret, '[secret]')
  message = message.slice(0, comparedMaxChars)
  message = message.replace(/\b(?:sk|br|gsk|xai|key|pk|rk)-[A-Za-z0-9_*.-]{6,}/g, '[secret]').replace(/[^\x21-\x7e\u00a1-\uffff]+/g, ' ')
  const content = contentOf(body)
  message = content === null ? '[…]' : withoutQuotes(message, content)
  // JSON in the database cannot store half a surrogate pair, which may come from the cut or from the provider.
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

/** Every field of any API in which the user may have written text. */
const contentNames = ['messages', 'input', 'prompt', 'system', 'instructions', 'tools', 'text', 'response_format', 'metadata', 'user'] as const

/** Returns every text that the user may have written; null: the text is too long or nested too deeply to be searched. */
function contentOf(body: Readonly<Record<string, unknown>>): string | null {
  // Checks the size first, so that a large body is not serialised in vain.
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
 * Replaces each longest run of words that also occurs in the content, if it is long enough to be a quote. It searches the content at most twice for each word,
 * and a message has at most half as many words as characters, so a hostile one takes some milliseconds.
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
