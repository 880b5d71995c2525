import { BrigadeError, errorOf } from './brigade-error.ts'

/**
 * Returns the reply when it is ok. Throws BrigadeError for other replies. A redirect becomes the error `wrong_address`, because no credential and no
 * write should follow a redirect.
 */
export async function okReply(baseUrl: string, reply: Response): Promise<Response> {
  if (reply.type === 'opaqueredirect' || (reply.status >= 300 && reply.status < 400)) {
    // The message omits the query, because the query may contain secrets of a sign-in.
    const location = reply.headers.get('location')?.replace(/[?#].*$/s, '')
    await reply.body?.cancel()
    throw wrongAddress(`${baseUrl} redirects${location === undefined ? '' : ` to ${location}`}.`)
  }
  if (!reply.ok) throw await errorOf(reply)
  return reply
}

/** Returns the JSON object of a reply. Throws BrigadeError `wrong_address` for any other body, because the gateway sends only JSON objects here. */
export async function jsonOf(baseUrl: string, reply: Response): Promise<unknown> {
  const parsed = parsedOf(await reply.text())
  if (typeof parsed !== 'object' || parsed === null) throw notTheGateway(baseUrl)
  return parsed
}

/** Parses the text. The error of JSON.parse is dropped, because it quotes the text, and the text may contain a token. */
function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Returns the error for an address where a proxy or another service answers instead of the gateway. */
export function notTheGateway(baseUrl: string): BrigadeError {
  return wrongAddress(`What answers at ${baseUrl} is not the gateway, or a proxy before it that has a page of its own.`)
}

function wrongAddress(what: string): BrigadeError {
  const message = `${what} Give the address where the gateway itself answers as baseUrl.`
  return new BrigadeError({ status: 400, code: 'wrong_address', message, shouldRetry: false })
}
