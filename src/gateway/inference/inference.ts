import type { Call, Form, Reply } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/principal.ts'
import { Bills } from './billed.ts'
import { countTokens } from './count-tokens.ts'
import type { InferenceDeps } from './deps.ts'
import { servePanel } from './image-panel.ts'
import { speechKind, transcriptionKind } from './kinds/audio.ts'
import { formParts, parseTranscription, TranscriptionRequest } from './kinds/audio-requests.ts'
import { chatKind } from './kinds/chat.ts'
import { embeddingsKind } from './kinds/embeddings.ts'
import { imagesKind } from './kinds/images.ts'
import { imageEditRequest, imagesRequest } from './kinds/images-request.ts'
import type { Kind } from './kinds/kind.ts'
import { messagesKind } from './kinds/messages.ts'
import type { CallInput } from './kinds/request.ts'
import { responsesKind } from './kinds/responses.ts'
import type { Idempotency } from './once.ts'
import { panelIdOf } from './panel-id.ts'
import { serve } from './pipeline.ts'

const noHeaders: CallInput['headers'] = Object.freeze({})
const noBytes = Buffer.alloc(0)
const bodyOnly = (bytes: Buffer): CallInput => ({ bytes, headers: noHeaders, query: '' })

/** The inference endpoints as a service: each is the one pipeline with its kind, made once by idempotency key. */
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

  /** Not charged, and so not made once by idempotency key either. */
  countTokens(input: CallInput, call: Call<Principal>): Promise<Reply> {
    return countTokens(input, call, this.#deps)
  }

  responses(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(responsesKind, bodyOnly(bytes), call)
  }

  embeddings(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return this.#serve(embeddingsKind, bodyOnly(bytes), call)
  }

  /** The recording is measured before anything is held: what it costs depends on its length. */
  async transcribe(form: Form, call: Call<Principal>): Promise<Reply> {
    const parsed = parseTranscription(form)
    const { seconds } = await this.#deps.audioLengths.measure(parsed.call.file)
    return this.#serve(transcriptionKind(new TranscriptionRequest(parsed, seconds)), { ...bodyOnly(noBytes), form }, call, formParts(form))
  }

  async images(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    const { serviceId } = this.#deps.images
    const request = imagesRequest(bytes, serviceId)
    if (panelIdOf(request.modelId, serviceId) === null) return this.#serve(imagesKind(request), bodyOnly(bytes), call)
    const bills = new Bills()
    return this.#idempotency.onceInParts(call, [bytes], () => servePanel(request, call, this.#deps, bills), {
      isCharged: () => bills.isCharged,
      usage: outcome => ({ model: request.modelId, cost_inr: bills.costInr, value_inr: bills.valueInr, outcome }),
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
