/** A client that keeps what it got of a reply whose connection broke. */
import type { Step } from './plan.ts'

export interface Sent {
  readonly step: Step
  readonly target: number
  /** null: no answer at all. */
  readonly status: number | null
  readonly text: string
  /** The reply came to its end as its protocol says. */
  readonly isComplete: boolean
  /** When so many characters of content were here, oldest first. */
  readonly arrivals: readonly { readonly atMs: number; readonly chars: number }[]
}

const contentChars = (text: string): number => [...text.matchAll(/"content":"(x*)"/g)].reduce((sum, match) => sum + (match[1]?.length ?? 0), 0)

/** Sends one call and reads what comes. Never rejects. */
export async function send(baseUrl: string, token: string, step: Step, target: number): Promise<Sent> {
  const { label, tokens, stream, once, hangsUp, caller } = step
  const arrivals: { atMs: number; chars: number }[] = []
  const gone = new AbortController()
  let status: number | null = null
  let text = ''
  const sent = (isComplete: boolean): Sent => ({ step, target, status, text, isComplete, arrivals })
  try {
    const response = await fetch(`${baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(caller === 'agent' || caller === 'child' ? {} : { 'x-br-agent-id': label }),
        ...(once ? { 'idempotency-key': label } : {}),
      },
      body: JSON.stringify({ model: 'fixed-model', max_tokens: tokens, messages: [{ role: 'user', content: label }], ...(stream ? { stream } : {}) }),
      signal: gone.signal,
    })
    status = response.status
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      if (!stream) continue
      arrivals.push({ atMs: Date.now(), chars: contentChars(text) })
      if (hangsUp && arrivals.length > 1) gone.abort()
    }
    return sent(status === 200 && (!stream || text.endsWith('data: [DONE]\n\n')) && !text.includes('"error":'))
  } catch {
    return sent(false)
  }
}
