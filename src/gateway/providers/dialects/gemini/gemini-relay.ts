/** Passes calls of clients of Google's API on to providers with the same API. It changes little in requests, and reads streams while they pass. */
import { isObject, objectsOf, parsedObject } from '../../../../platform/values/json.ts'
import { hasPackedSignature, withOwnSignatures } from '../../../wire/gemini/signatures.ts'
import { isBoundedJson } from '../../../wire/json/json-bounds.ts'
import { hasDoubles } from '../../../wire/json/json-doubles.ts'
import { editMembers } from '../../../wire/json/json-members.ts'
import { outputChars } from '../../../wire/output-chars.ts'
import type { NativeRequest, Target, UpstreamRequest } from '../../dialect.ts'
import { EventTap } from '../event-tap.ts'
import { jsonBody } from '../json-values.ts'
import { thinksByLevel } from './gemini-config.ts'
import { unsigned } from './gemini-contents.ts'
import { blockedPromptText, finishReason, geminiUsage } from './gemini-reply.ts'

/** The name under which a dropped signature is reported. */
const signatureName = 'contents.parts.thoughtSignature'

/**
 * Returns the body for a provider that uses the same format, byte for byte with two exceptions. Signatures that this gateway packed for another model are
 * removed, and a model that checks signatures gets Google's mark for calls of other models. A model in the body is removed, because the path names it.
 */
export function geminiRelayBody({ body, bytes }: NativeRequest, target: Target): Pick<UpstreamRequest, 'body' | 'unwritten' | 'dropped'> {
  const { upstreamModel } = target
  const contents: readonly unknown[] = Array.isArray(body['contents']) ? body['contents'] : []
  const mark = thinksByLevel(upstreamModel) ? unsigned : null
  const isPacked = contents.some(hasPackedSignature)
  const own = isPacked || mark !== null ? contents.map(content => withOwnSignatures(content, mark)) : contents
  const edits = new Map<string, unknown>()
  if (own.some((content, index) => content !== contents[index])) edits.set('contents', own)
  if (body['model'] !== undefined) edits.set('model', undefined)
  const dropped = isPacked ? [signatureName] : none
  const isWrittenLater = target.writesLater === true && edits.has('contents')
  // When a name occurs twice, the gateway reads the last occurrence, and a provider may read the first.
  if (bytes === null || isWrittenLater || hasDoubles(bytes, body)) return { ...jsonBody({ ...body, ...Object.fromEntries(edits) }, target), dropped }
  if (edits.size === 0) return { body: bytes, dropped }
  const texts = [...edits].map(([name, value]): [string, string | undefined] => [name, value === undefined ? undefined : JSON.stringify(value)])
  return { body: editMembers(bytes, new Map(texts)), dropped }
}

const none: readonly string[] = Object.freeze([])

/** Returns the body that asks for the tokens of a request. A request with more than contents is sent as a whole. */
export function geminiCountBody({ body }: NativeRequest, target: Target): Pick<UpstreamRequest, 'body' | 'unwritten'> {
  const { contents, model: _model, ...others } = body
  if (Object.keys(others).length === 0) return jsonBody({ contents }, target)
  const model = `models/${target.upstreamModel.replace(/^models\//, '')}`
  return jsonBody({ generateContentRequest: { model, contents, ...others } }, target)
}

/** Maximum number of characters of an error that are passed on. */
const faultMaxChars = 4096

/**
 * Reads a stream of this API while its bytes pass. The same bytes give the same result, however they are chunked. The format has no end mark: the stream is
 * complete when every answer has a reason of its end and the bytes end. From the first such reason on, the events are held back until then, so that nothing
 * follows the last event that the client gets.
 */
export class GeminiStreamTap extends EventTap {
  /** The answers that have begun, with whether they have ended. */
  readonly #answers = new Map<unknown, boolean>()
  #hasRefusal = false

  protected field(bytes: Uint8Array, start: number, end: number): boolean {
    const line = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start)
    if (line.indexOf('data:') !== 0) return false
    this.#event(isBoundedJson(line, 0, line.length) ? parsedObject(line.toString('utf8', 'data:'.length)) : null)
    return true
  }

  /** Ends the bytes. */
  end(): void {
    if (this.failed || !this.holdsBack) return
    this.finished = this.#hasRefusal || [...this.#answers.values()].every(hasEnded => hasEnded)
    this.over = this.finished
  }

  #event(event: Record<string, unknown> | null): void {
    if (event === null) return
    if (isObject(event['error'])) {
      this.failed = true
      this.fault = JSON.stringify(event['error']).slice(0, faultMaxChars)
      return
    }
    for (const candidate of objectsOf(event['candidates'])) {
      this.says = true
      this.outputChars += outputChars(candidate['content'])
      const hasEnded = finishReason(candidate['finishReason'], false) !== null
      if (this.#answers.size < answersMax) this.#answers.set(candidate['index'] ?? 0, hasEnded || this.#answers.get(candidate['index'] ?? 0) === true)
      if (hasEnded) this.holdsBack = true
    }
    if (blockedPromptText(event) !== null) {
      this.says = true
      this.#hasRefusal = true
      this.holdsBack = true
    }
    const usage = geminiUsage(event['usageMetadata'])
    if (usage === null) return
    this.says = true
    this.usage = usage
    this.usageChars = this.outputChars
  }
}

/** Maximum number of answers of one stream that are watched. */
const answersMax = 128
