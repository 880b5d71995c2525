import type { CustomFetch } from 'openid-client'
import type { Outbound } from '../../../platform/outbound/outbound.ts'

/** An identity provider did not reply, or its reply exceeded the limit of time or size. */
export class ProviderUnreachableError extends Error {
  override readonly name = 'ProviderUnreachableError'
}

/** Maximum time of one call to an identity provider. */
export const providerTimeoutMs = 10_000
/** Discovery documents, keys, tokens and profiles are a few KiB. */
const replyMaxBytes = 512 * 1024
/** Statuses without a body. The `Response` constructor refuses a body with them. */
const bodiless = new Set([101, 204, 205, 304])

/**
 * Makes the `fetch` of openid-client from the gateway's own outbound client. It has limits of time and size and follows no redirects. With
 * `ownOrigin`, requests to other origins, which only metadata name, pass the URL guard. The returned function throws ProviderUnreachableError.
 */
export function providerFetch(outbound: Pick<Outbound, 'toProvider' | 'toUserUrl'>, ownOrigin: string | null = null): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const isTrusted = ownOrigin === null || new URL(url).origin === ownOrigin
    try {
      const reply = await outbound[isTrusted ? 'toProvider' : 'toUserUrl']({
        method: method === 'POST' ? 'POST' : 'GET',
        url,
        headers: { 'user-agent': 'brigade', ...headers },
        headersTimeoutMs: providerTimeoutMs,
        bodyTimeoutMs: providerTimeoutMs,
        ...(body instanceof URLSearchParams || typeof body === 'string' ? { body: String(body) } : {}),
        ...(signal === undefined ? {} : { signal }),
      })
      const bytes = await reply.body.buffer(replyMaxBytes)
      return new Response(bodiless.has(reply.status) ? null : new Uint8Array(bytes), { status: reply.status, headers: textHeaders(reply.headers) })
    } catch (cause) {
      throw new ProviderUnreachableError(`${new URL(url).host} did not answer`, { cause })
    }
  }
}

function textHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const made = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const text of Array.isArray(value) ? value : value === undefined ? [] : [value]) made.append(name, text)
  }
  return made
}
