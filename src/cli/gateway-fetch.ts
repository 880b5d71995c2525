import { CommandError, notAGateway } from './command-error.ts'

/** Maximum time of one request, including its body. */
const requestTimeoutMs = 120_000

/**
 * Returns a `fetch` for commands. When no reply of a gateway arrives (wrong address, connection, TLS, a proxy's page, a redirect), it throws a
 * CommandError that says what to do. Replies of a gateway are returned unchanged, whatever their status. With `timeoutMs: null`, it waits without a
 * limit.
 */
export function gatewayFetch(baseUrl: string, timeoutMs: number | null = requestTimeoutMs): typeof fetch {
  return async (input, init) => {
    const signals = [...(init?.signal ? [init.signal] : []), ...(timeoutMs === null ? [] : [AbortSignal.timeout(timeoutMs)])]
    let reply: Response
    try {
      reply = await fetch(input, { ...init, redirect: 'manual', ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }) })
    } catch (thrown) {
      // The caller handles its own abort. A timeout of the caller is reported like the timeout of this function.
      if (init?.signal?.aborted && !isTimeout(thrown)) throw thrown
      throw unreachable(baseUrl, thrown)
    }
    await expectGateway(baseUrl, reply)
    return reply
  }
}

/** Throws CommandError unless the reply comes from a gateway: it has a request id, is not a web page and does not redirect. */
async function expectGateway(baseUrl: string, reply: Response): Promise<void> {
  const location = reply.headers.get('location')
  const isPage = (reply.headers.get('content-type') ?? '').startsWith('text/html')
  if (reply.headers.has('x-request-id') && !isPage && location === null) return
  await reply.body?.cancel()
  if (location !== null) throw notAGateway(baseUrl, `it leads to ${printable(location)}`)
  if (reply.status >= 502 && reply.status <= 504)
    throw new CommandError(`the gateway at ${baseUrl} is away: a proxy answers with status ${reply.status}. Try again later.`, {
      code: 'unreachable',
      status: reply.status,
    })
  throw notAGateway(baseUrl, `it answered with ${isPage ? 'a web page' : 'no x-request-id'}, status ${reply.status}`)
}

/** Returns the URL without query and fragment, which may contain secrets of a sign-in. */
function printable(location: string): string {
  return location.replace(/[?#].*$/s, '').replace(/[^!-~]/g, '')
}

const tlsCodes = /^(CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_TLS_|ERR_SSL_|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/

function unreachable(baseUrl: string, thrown: unknown): CommandError {
  const said = (message: string): CommandError => new CommandError(message, { code: 'unreachable', cause: thrown })
  if (isTimeout(thrown)) return said(`the gateway at ${baseUrl} did not answer in time. Try again.`)
  const code = codeOf(thrown)
  switch (code) {
    case 'ECONNREFUSED':
      return said(`nothing listens at ${baseUrl}. Start the gateway (brigade serve), or set BRIGADE or --base-url to its address.`)
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return said(`the name ${new URL(baseUrl).hostname} cannot be found. Check the address in BRIGADE or --base-url, and your network.`)
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return said(
        `the connection to ${baseUrl} was cut before the answer. The request may have been carried out: check, then try again. Is it the right address, and http rather than https or the reverse?`,
      )
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return said(`what listens at ${baseUrl} does not speak TLS. Is it http:// instead of https://?`)
    default:
  }
  if (code.startsWith('HPE_')) return notAGateway(baseUrl, 'it does not speak HTTP', thrown)
  if (tlsCodes.test(code))
    return said(`the certificate of ${baseUrl} is not trusted (${code}). For a certificate authority of your own set NODE_EXTRA_CA_CERTS to its file.`)
  return said(`the gateway at ${baseUrl} cannot be reached${code === '' ? '' : ` (${code})`}. Check the address in BRIGADE or --base-url, and your network.`)
}

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'TimeoutError'
}

/** Returns the code of the innermost cause that has one, or '' when none has. */
function codeOf(thrown: unknown): string {
  let found = ''
  for (let at: unknown = thrown; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') found = at.code
    // Some versions of undici do not pass the code on.
    else if (at.name === 'HTTPParserError') found = 'HPE_'
  }
  return found
}
