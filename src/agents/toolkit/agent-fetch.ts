import { type Credential, sourceOf } from './token-source.ts'

/**
 * A `fetch` that signs each request with the bearer of `credential`, whatever the caller put into Authorization. A 401 that a fresh token
 * may mend is tried once more with one, when the body can be sent again. Every other reply comes back as it is.
 */
export function agentFetch(credential: Credential, inner: typeof fetch = fetch): typeof fetch {
  const source = sourceOf(credential)
  return async (input, init) => {
    const signed = async (forceRefresh: boolean): Promise<Response> => {
      const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
      headers.set('authorization', `Bearer ${await source.getToken({ forceRefresh })}`)
      return inner(input, { ...init, headers })
    }
    return signed(false)
  }
}
