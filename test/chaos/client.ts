/** A client that keeps what it got of a reply whose connection broke. */
import { Agent, request } from 'node:http'
import type { Step } from './plan.ts'

export interface Sent {
  readonly step: Step
  readonly target: number
  /** null: no answer at all. */
  readonly status: number | null
  readonly text: string
  /** The reply came to its end as its protocol says. */
  readonly isComplete: boolean
  /** Nothing came for so long that the call was given up: no gateway may do that, dead or alive. */
  readonly hung: boolean
  /** When so many characters of content were here, oldest first. */
  readonly arrivals: readonly { readonly atMs: number; readonly chars: number }[]
}

/** Longer than anything of these rounds takes. */
const hungMs = 30_000
const agent = new Agent({ keepAlive: true })

/** Closes the connections of earlier calls. A worker gets calls only over connections that were opened after its start. */
export const closeConnections = (): void => agent.destroy()

const contentChars = (text: string): number => [...text.matchAll(/"content":"(x*)"/g)].reduce((sum, match) => sum + (match[1]?.length ?? 0), 0)

/** Sends one call and reads what comes; `onText` gets every byte immediately. Never rejects. */
export function send(baseUrl: string, token: string, step: Step, target: number, onText: (text: string) => void = () => {}): Promise<Sent> {
  const { label, tokens, stream, once, hangsUp, caller } = step
  const arrivals: { atMs: number; chars: number }[] = []
  const body = JSON.stringify({ model: 'fixed-model', max_tokens: tokens, messages: [{ role: 'user', content: label }], ...(stream ? { stream } : {}) })
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(caller === 'agent' || caller === 'child' ? {} : { 'x-br-agent-id': label }),
    ...(once ? { 'idempotency-key': label } : {}),
  }
  return new Promise(resolve => {
    let status: number | null = null
    let text = ''
    let hung = false
    const outgoing = request(`${baseUrl}/v1/chat/completions`, { method: 'POST', agent, headers, timeout: hungMs })
    const done = (isWhole: boolean): void => {
      const isComplete = isWhole && status === 200 && (!stream || text.endsWith('data: [DONE]\n\n')) && !text.includes('"error":')
      resolve({ step, target, status, text, isComplete, hung, arrivals })
    }
    outgoing.once('error', () => done(false))
    outgoing.once('timeout', () => {
      hung = true
      outgoing.destroy()
    })
    outgoing.once('response', response => {
      status = response.statusCode ?? null
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
        onText(text)
        if (!stream) return
        arrivals.push({ atMs: Date.now(), chars: contentChars(text) })
        if (hangsUp && arrivals.length > 1) outgoing.destroy()
      })
      response.once('error', () => done(false))
      response.once('close', () => done(response.complete))
    })
    outgoing.end(body)
  })
}
