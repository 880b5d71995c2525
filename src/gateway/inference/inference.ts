import type { Call, Reply } from '../../platform/endpoint.ts'
import type { Principal } from '../../platform/principal.ts'
import type { InferenceDeps } from './deps.ts'
import { chatKind } from './kinds/chat.ts'
import { embeddingsKind } from './kinds/embeddings.ts'
import type { CallInput } from './kinds/request.ts'
import { serve } from './pipeline.ts'

const noHeaders: CallInput['headers'] = Object.freeze({})
const bodyOnly = (bytes: Buffer): CallInput => ({ bytes, headers: noHeaders, query: '' })

/** The inference endpoints as a service: each is the one pipeline with its kind. */
export class Inference {
  readonly #deps: InferenceDeps
  constructor(deps: InferenceDeps) {
    this.#deps = deps
  }

  chat(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return serve(chatKind, bodyOnly(bytes), call, this.#deps)
  }

  embeddings(bytes: Buffer, call: Call<Principal>): Promise<Reply> {
    return serve(embeddingsKind, bodyOnly(bytes), call, this.#deps)
  }
}
