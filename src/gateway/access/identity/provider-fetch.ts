import type { CustomFetch } from 'openid-client'
import type { Outbound } from '../../../platform/outbound/outbound.ts'

/** An identity provider that did not answer, or not within the bounds. */
export class ProviderUnreachableError extends Error {
  override readonly name = 'ProviderUnreachableError'
}

/** How long one call to an identity provider may take. */
export const providerTimeoutMs = 10_000
/** Discovery documents, keys, tokens and profiles are a few KiB. */
const replyMaxBytes = 512 * 1024
/** Statuses whose reply has no body, which `Response` insists on. */
const bodiless = new Set([101, 204, 205, 304])

/** `fetch` as openid-client wants it, over the project's own way out: bounded in time and size, no redirects. Throws ProviderUnreachableError. */
export function providerFetch(outbound: Pick<Outbound, 'toProvider'>): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    try {
      const reply = await outbound.toProvider({
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
