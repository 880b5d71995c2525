import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server on 127.0.0.1 to which the browser brings a one-time code. */
export interface CodeReceiver {
  readonly port: number
  /** Resolves with the code of the first request that has the right state. */
  readonly code: Promise<string>
  close(): Promise<void>
}

const host = '127.0.0.1'
const codeShape = /^[!-~]{10,200}$/

const page = (title: string, text: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body style="font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:15vh auto;padding:0 1.5rem"><h1>${title}</h1><p>${text}</p><script>history.replaceState(null,'','/done')</script></body></html>\n`
const done = page('Signed in', 'The command line has its key. You can close this window.')
const notWaited = page('That did not work', 'The command line did not ask for this. Run <code>brigade login</code> again and open the address that it prints.')

/** Listens on a free port. Requests with another state are refused and change nothing. */
export async function receiveCode(state: string): Promise<CodeReceiver> {
  let bring: (code: string) => void = () => {}
  const code = new Promise<string>(resolve => {
    bring = resolve
  })
  const server: Server = createServer((request, response) => {
    const brought = codeIn(request, state)
    answer(response, brought === null ? 400 : 200, brought === null ? notWaited : done)
    // The page is sent before the code is passed on, because the server is closed as soon as it has the code.
    if (brought !== null) response.once('close', () => bring(brought))
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen(0, host, listening)
  })
  return {
    port: (server.address() as AddressInfo).port,
    code,
    close() {
      server.closeAllConnections()
      return new Promise(closed => server.close(() => closed()))
    },
  }
}

/** Returns the code when the request is the expected one. Returns null for every other request. */
function codeIn(request: IncomingMessage, state: string): string | null {
  if (request.method !== 'GET' || !URL.canParse(request.url ?? '', `http://${host}`)) return null
  const { pathname, searchParams } = new URL(request.url ?? '', `http://${host}`)
  const code = searchParams.get('code')
  if (pathname !== '/callback' || searchParams.get('state') !== state || code === null || !codeShape.test(code)) return null
  return code
}

function answer(response: ServerResponse, status: number, html: string): void {
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' }
  response.writeHead(status, headers).end(html)
}
