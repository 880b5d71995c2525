/** Reads /metrics and probes as monitoring does: any header, a connection for each request, a strict reader of the text. */
import { request } from 'node:http'

/** What Prometheus reads of a text: values by name and labels. Throws at a line that is not in the format. */
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

/** What a request got. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** A request of any method with any headers, over a connection of its own. */
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
