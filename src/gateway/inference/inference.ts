import type { Call, Form, Reply } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import { geminiFormat } from '../wire/gemini/format.ts'
import { exactNumbersOf } from '../wire/json/json-body.ts'
import { messagesFormat } from '../wire/messages/format.ts'
import { ChargeTotal } from './charge/charge-total.ts'
import { countTokens } from './count-tokens/count-tokens.ts'
import type { InferenceDeps } from './deps.ts'
import type { Idempotency } from './idempotency/idempotency.ts'
import { chatKind } from './kinds/chat.ts'
import { embeddingsKind } from './kinds/embeddings.ts'
import { type GeminiCall, geminiKind, parseGeminiCount } from './kinds/gemini.ts'
import { geminiEmbeddings } from './kinds/gemini-embeddings.ts'
import type { Kind } from './kinds/kind.ts'
import { speechKind, transcriptionKind } from './kinds/media/audio.ts'
import { formParts, parseTranscription, TranscriptionRequest } from './kinds/media/audio-requests.ts'
import { imagesKind } from './kinds/media/images.ts'
import { type ImagesRequest, imageEditRequest, imagesRequest } from './kinds/media/images-request.ts'
import { moderationKind, rerankKind } from './kinds/media/scores.ts'
import { messagesKind, parseMessages } from './kinds/messages.ts'
import type { CallInput } from './kinds/request.ts'
import { responsesKind } from './kinds/responses.ts'
import { servePanel } from './panel/image-panel.ts'
import { panelIdOf } from './panel/panel-id.ts'
import { bearer, inTurnOf, parsedInTurns, serve } from './pipeline.ts'
import { asArrayStream } from './stream/array-stream.ts'

const noHeaders: CallInput['headers'] = Object.freeze({})
const noBytes = Buffer.alloc(0)
const bodyOnly = (bytes: Buffer): CallInput => ({ bytes, headers: noHeaders, query: '' })

/** The inference endpoints as a service. Each endpoint runs the pipeline with its kind, and runs it once for each idempotency key. */
export class Inference {
  readonly #deps: InferenceDeps
  readonly #idempotency: Idempotency

  constructor(deps: InferenceDeps, idempotency: Idempotency) {
    this.#deps = deps
    this.#idempotency = idempotency
  }

  chat(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(chatKind, bodyOnly(bytes), call)
  }

  messages(input: CallInput, call: Call<Principal>): Promise<Reply> {
    return this.#serve(messagesKind, input, call)
  }

  /** Token counts are not charged, so idempotency keys do not apply to them. */
  countTokens(input: CallInput, call: Call<Principal>): Promise<Reply> {
    return countTokens({ format: messagesFormat, name: 'input_tokens', parse: parseMessages }, input, call, this.#deps)
  }

  /** `asArray`: a stream is one JSON array, not server-sent events. */
  async gemini(asked: GeminiCall & { readonly asArray: boolean }, bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    const made = await this.#serve(geminiKind(asked), bodyOnly(bytes), call, [JSON.stringify([asked.model, asked.stream]), bytes])
    return asked.asArray ? asArrayStream(made) : made
  }

  countGemini(model: string, bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    const parse = (input: CallInput): ReturnType<typeof parseGeminiCount> => parseGeminiCount(model, input)
    return countTokens({ format: geminiFormat, name: 'totalTokens', parse }, bodyOnly(bytes), call, this.#deps)
  }

  async embedGemini(model: string, isBatch: boolean, bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    const { kind, replyOf } = geminiEmbeddings(model, isBatch)
    return replyOf(await this.#serve(kind, bodyOnly(bytes), call, [JSON.stringify([model, isBatch]), bytes]))
  }

  responses(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(responsesKind, bodyOnly(bytes), call)
  }

  embeddings(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(embeddingsKind, bodyOnly(bytes), call)
  }

  rerank(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(rerankKind, bodyOnly(bytes), call)
  }

  moderate(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(moderationKind, bodyOnly(bytes), call)
  }

  /** Measures the recording before the hold, because the price depends on its length. Throws `places_taken` when it cannot be measured. */
  async transcribe(form: Form, call: Call<Principal>): Promise<Reply> {
    const parsed = parseTranscription(form)
    const length = await this.#deps.audioLengths.measure(parsed.call.file, { orgId: bearer(call.principal).orgId, signal: call.signal })
    return this.#serve(transcriptionKind(new TranscriptionRequest(parsed, length)), { ...bodyOnly(noBytes), form }, call, formParts(form))
  }

  async images(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    const { serviceId } = this.#deps.images
    const inTurn = inTurnOf({ bytes }, call, this.#deps)
    const read = (): ImagesRequest => imagesRequest(bytes, serviceId)
    const request = inTurn === undefined ? read() : await parsedInTurns(bytes, inTurn, read)
    const deps = { ...this.#deps, exact: exactNumbersOf(bytes) }
    if (panelIdOf(request.modelId, serviceId) === null) return this.#serve(imagesKind(request), bodyOnly(bytes), call)
    const chargeTotal = new ChargeTotal()
    return this.#idempotency.onceInParts(call, [bytes], () => servePanel({ asked: request, bytes: bytes.length }, call, deps, chargeTotal), {
      isCharged: () => chargeTotal.isCharged,
      usage: outcome => ({ model: request.modelId, cost_inr: inrFromUinr(chargeTotal.costUinr), value_inr: inrFromUinr(chargeTotal.valueUinr), outcome }),
    })
  }

  async editImages(form: Form, call: Call<Principal>): Promise<Reply> {
    const request = imageEditRequest(form, this.#deps.images.serviceId)
    return this.#serve(imagesKind(request), { ...bodyOnly(noBytes), form }, call, formParts(form))
  }

  speak(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(speechKind, bodyOnly(bytes), call)
  }

  #serve(kind: Kind, input: CallInput, call: Call<Principal>, body: readonly (Buffer | string)[] = [input.bytes]): Promise<Reply> {
    return this.#idempotency.once(call, body, once => serve(kind, input, call, this.#deps, once))
  }
}
