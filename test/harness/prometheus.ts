/** Reads /metrics and the probes as a monitoring system does: with any headers, a new connection for each request, and a strict parser. */
import { request } from 'node:http'

/** Parses a text as Prometheus does. Returns values by name and labels. Throws for a line that breaks the format. */
export function parsed(text: string): Map<string, number> {
  const values = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ') || line.startsWith('# TYPE ')) continue
    const found = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\.)*",?)*\})? (-?[0-9.e+-]+|Na[Nn]|[+]Inf|-Inf)$/.exec(line)
    if (found === null) throw new Error(`no line of Prometheus: ${line}`)
    const key = `${found[1]}${found[2] ?? ''}`
    if (values.has(key)) throw new Error(`twice: ${key}`)
    values.set(key, Number(found[3]))
  }
  return values
}

/** The reply to a request. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** Makes a request with any method and headers, over a new connection. */
export function ask(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((done, failed) => {
    const sent = request(url, { headers, method, agent: false }, reply => {
      let text = ''
      reply.setEncoding('utf8')
      reply.on('data', (chunk: string) => {
        text += chunk
      })
      reply.on('end', () => done({ status: reply.statusCode ?? 0, text, headers: reply.headers }))
    })
    sent.on('error', failed)
    sent.end()
  })
}
