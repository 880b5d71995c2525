/** Requests that wait for a word before they send their body (`Expect: 100-continue`): who is refused need not send it. */
import type { IncomingMessage, ServerResponse } from 'node:http'

const toldToGoOn = new WeakSet<IncomingMessage>()

export const expectsContinue = ({ headers }: IncomingMessage): boolean => headers.expect !== undefined && /^\s*100-continue\s*$/i.test(headers.expect)

/** Says it, once. The server does not by itself, because it has a listener of `checkContinue`. */
export function sendContinue(request: IncomingMessage, response: ServerResponse): void {
  if (toldToGoOn.has(request)) return
  toldToGoOn.add(request)
  response.writeContinue()
}

/** Whether the client still waits for the word and so has sent nothing of its body. */
export const waitsForContinue = (request: IncomingMessage): boolean => expectsContinue(request) && !toldToGoOn.has(request)
