/** A request that may have to be sent twice. */
export interface Sendable {
  /** As the caller gave them. */
  readonly headers: Headers
  readonly signal: AbortSignal | null
  /** False for streams, which can be read once only. */
  readonly mayRepeat: boolean
  /** The arguments of one fetch; each call may be sent. */
  next(): [target: string | URL | Request, init: RequestInit]
}

/** The request that these arguments of fetch make. */
export function sendableOf(target: string | URL | Request, init: RequestInit = {}): Sendable {
  const request = typeof target === 'object' && 'clone' in target ? target : null
  const isOfRequest = request !== null && (init.body === undefined || init.body === null)
  return {
    headers: new Headers(init.headers ?? request?.headers),
    signal: init.signal ?? request?.signal ?? null,
    mayRepeat: isOfRequest || isKept(init.body),
    // A clone each time, because a request whose body was sent cannot be cloned any more.
    next: () => [isOfRequest && request.body !== null ? request.clone() : target, init],
  }
}

/** Bodies that are still whole after they were sent. */
function isKept(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true
  const kinds = [ArrayBuffer, Blob, FormData, URLSearchParams]
  return ArrayBuffer.isView(body) || kinds.some(kind => body instanceof kind)
}
