/** Handles `Expect: 100-continue`. A client with this header waits for `100 Continue` before it sends its body, so a refused client need not send it. */
import type { IncomingMessage, ServerResponse } from 'node:http'

const toldToGoOn = new WeakSet<IncomingMessage>()

export const expectsContinue = ({ headers }: IncomingMessage): boolean => headers.expect !== undefined && /^\s*100-continue\s*$/i.test(headers.expect)

/** Sends `100 Continue`, at most once per request. Node.js does not send it, because the server has a listener for `checkContinue`. */
export function sendContinue(request: IncomingMessage, response: ServerResponse): void {
  if (toldToGoOn.has(request)) return
  toldToGoOn.add(request)
  response.writeContinue()
}

/** Returns true while the client still waits for `100 Continue` and so has sent nothing of its body. */
export const waitsForContinue = (request: IncomingMessage): boolean => expectsContinue(request) && !toldToGoOn.has(request)
