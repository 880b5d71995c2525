import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { CredentialsError } from '../cloud/authorise.ts'
import { bedrockUrl, vertexClaudeUrl } from '../providers/clouds/cloud-addresses.ts'
import type { Provider } from '../providers/provider.ts'
import { type ModelPage, modelPageOf } from './model-list.ts'

/** The result of testing a key at its provider. Decision 0120 says why. */
export type ProbeOutcome =
  /**
   * The provider accepted the key. `proven` is true when the provider would have refused a wrong key. `models` has at most 2,000 ids in the
   * provider's spelling.
   */
  | { readonly kind: 'ok'; readonly proven: boolean; readonly models: readonly string[] }
  | { readonly kind: 'rejected' }
  /** `why` is for the caller. It is a status or an error code, never the provider's text. */
  | { readonly kind: 'unreachable'; readonly why: string }

export interface ProbeDeps {
  readonly dial: Outbound['toProvider']
  /** Authorises and sends a request with credentials that expire, in place of a key. */
  readonly authorised?: Outbound['toProvider']
  /** Time limit of all requests together. */
  readonly timeoutMs: number
}

const pagesMax = 10
const pageModels = 1000
const modelsMax = 2000
/** Enough for the longest lists today. They have a few hundred models with long descriptions. */
const pageMaxBytes = 8 * 1024 * 1024
const errorMaxBytes = 64 * 1024
/** Statuses with which a provider replies when it does not have the path. */
const missing: readonly number[] = [404, 405, 501]
/** Words by which a provider says that a key is wrong although the status is that of a bad request. */
const wrongKeyWords = /api[_ ]key[_ ](not[_ ]valid|invalid)|(invalid|incorrect|wrong)[_ ]api[_ ]key/i

/**
 * Tests a key at its provider, or credentials that expire when `authorised` is given. It reads the list of models. When the list needs no key, it also makes a call that needs one. The key is sent in
 * headers, and only to that provider. A failure of the provider is in the result and never throws.
 */
export async function probeKey(provider: Provider, key: Secret | null, deps: ProbeDeps): Promise<ProbeOutcome> {
  const probe = new Probe(provider, deps)
  try {
    return await probe.run(key)
  } catch (error) {
    if (error instanceof CredentialsError) return error.isRefusal ? { kind: 'rejected' } : { kind: 'unreachable', why: 'no token' }
    return { kind: 'unreachable', why: errorCode(error) }
  }
}

type Refusal = { readonly kind: 'rejected' } | { readonly kind: 'other'; readonly status: number }
type Verdict = { readonly kind: 'ok'; readonly text: string } | Refusal

class Probe {
  readonly #provider: Provider
  readonly #dial: Outbound['toProvider']
  readonly #authorised: Outbound['toProvider']
  readonly #signal: AbortSignal

  constructor(provider: Provider, { dial, authorised = dial, timeoutMs }: ProbeDeps) {
    this.#provider = provider
    this.#dial = dial
    this.#authorised = authorised
    this.#signal = AbortSignal.timeout(timeoutMs)
  }

  async run(key: Secret | null): Promise<ProbeOutcome> {
    const { modelsPath, keyCheckPath } = this.#provider
    if (keyCheckPath !== undefined) {
      const verdict = await this.#get(keyCheckPath, key)
      if (verdict.kind !== 'ok') return failed(verdict)
    }
    // The clouds list their models elsewhere.
    const listed = modelsPath === null || this.#provider.cloud !== undefined ? null : await this.#list(modelsPath ?? 'models', key)
    if (listed !== null) return listed
    if (keyCheckPath !== undefined) return { kind: 'ok', proven: true, models: [] }
    return await this.#emptyCall(key)
  }

  /** Reads the list of models. Returns null when the provider has no such list. */
  async #list(path: string, key: Secret | null): Promise<ProbeOutcome | null> {
    const models = new Set<string>()
    let page: ModelPage | null = null
    for (let count = 0; count < pagesMax && models.size < modelsMax; count++) {
      const verdict = await this.#get(path + this.#query(page?.next ?? null), key)
      // The first page already proves the key. When a later page is missing, only some models are missing.
      if (verdict.kind !== 'ok' && page !== null) break
      if (verdict.kind === 'other' && missing.includes(verdict.status)) return null
      if (verdict.kind !== 'ok') return failed(verdict)
      page = modelPageOf(verdict.text)
      if (page === null) return { kind: 'unreachable', why: 'its answer is no list of models' }
      for (const id of page.models) models.add(id)
      if (page.next === null) break
    }
    return { kind: 'ok', proven: true, models: [...models].slice(0, modelsMax) }
  }

  #query(next: string | null): string {
    switch (this.#provider.dialect) {
      case 'anthropic':
        return `?limit=${pageModels}${next === null ? '' : `&after_id=${encodeURIComponent(next)}`}`
      case 'gemini':
        return `?pageSize=${pageModels}${next === null ? '' : `&pageToken=${encodeURIComponent(next)}`}`
      case 'openai':
      case 'openai-responses':
        return next === null ? '' : `?after=${encodeURIComponent(next)}`
    }
  }

  /**
   * Sends a call without content, for providers without a list of models. The provider refuses the call for its key or for its body, and never
   * charges for it. The call proves the key only if the provider refuses the same call without a key because the key is missing.
   */
  async #emptyCall(key: Secret | null): Promise<ProbeOutcome> {
    const verdict = await this.#post(key, this.#authorised)
    if (verdict.kind === 'rejected') return { kind: 'rejected' }
    // A cloud looks up the model of the path after the key, and does not know the one of this call.
    const isMissing = this.#provider.cloud !== undefined && verdict.kind === 'other' && verdict.status === 404
    if (verdict.kind === 'other' && verdict.status !== 400 && verdict.status !== 422 && !isMissing) return failed(verdict)
    const withoutKey = await this.#post(null, this.#dial)
    return { kind: 'ok', proven: withoutKey.kind === 'rejected', models: [] }
  }

  #get(path: string, key: Secret | null): Promise<Verdict> {
    return this.#send({ method: 'GET', url: this.#url(path), headers: this.#headers(key) }, this.#authorised)
  }

  #post(key: Secret | null, dial: Outbound['toProvider']): Promise<Verdict> {
    const headers = { ...this.#headers(key), 'content-type': 'application/json' }
    return this.#send({ method: 'POST', url: this.#emptyUrl(), headers, body: '{"messages":[]}' }, dial)
  }

  /** Returns the address of a call that needs a key and generates nothing. */
  #emptyUrl(): string {
    const { cloud, baseUrl, dialect } = this.#provider
    if (cloud === 'bedrock-invoke') return bedrockUrl(baseUrl, 'anthropic.none', false)
    if (cloud === 'vertex') return vertexClaudeUrl(baseUrl, 'none', false)
    return this.#url(dialect === 'anthropic' ? 'messages' : 'chat/completions')
  }

  async #send(request: OutboundRequest, dial: Outbound['toProvider']): Promise<Verdict> {
    const { status, body } = await dial({ ...request, signal: this.#signal })
    if (status >= 200 && status < 300) return { kind: 'ok', text: (await body.buffer(pageMaxBytes)).toString('utf8') }
    if (status === 401 || status === 403) {
      body.destroy()
      return { kind: 'rejected' }
    }
    const text = (await body.buffer(errorMaxBytes)).toString('utf8')
    return status === 400 && wrongKeyWords.test(text) ? { kind: 'rejected' } : { kind: 'other', status }
  }

  #url(path: string): string {
    return new URL(path, `${this.#provider.baseUrl}/`).href
  }

  #headers(key: Secret | null): Record<string, string> {
    const { dialect, auth, cloud } = this.#provider
    const headers: Record<string, string> = { accept: 'application/json', 'accept-encoding': 'identity' }
    if (dialect === 'anthropic') headers['anthropic-version'] = '2023-06-01'
    if (key === null) return headers
    if (dialect === 'gemini' && cloud === undefined) headers['x-goog-api-key'] = key.reveal()
    else if (auth !== 'bearer' && auth !== 'none' && auth !== 'identity') headers[auth] = key.reveal()
    else headers['authorization'] = `Bearer ${key.reveal()}`
    return headers
  }
}

function failed(verdict: Refusal): ProbeOutcome {
  return verdict.kind === 'rejected' ? verdict : { kind: 'unreachable', why: `it answered ${verdict.status}` }
}

function errorCode(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown error'
}
