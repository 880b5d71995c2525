/** A real SMTP server on the loopback interface that stores what it receives. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly raw: string
  /** Header names in lower case, folded lines joined. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Decoded bodies by content type. */
  readonly parts: Readonly<Record<string, string>>
}

export interface MailServer {
  readonly url: string
  readonly port: number
  readonly received: ReceivedMail[]
  /** From now on the server refuses recipients with this answer. Null means that it accepts them. */
  refuseWith(answer: { code: number; message: string } | null): void
  /** Sets a function that runs while the server receives a message, before it accepts the message. */
  onData(fn: () => Promise<void>): void
  close(): Promise<void>
}

/** Starts the server on this port, or on a free port. */
export async function startMailServer(port = 0): Promise<MailServer> {
  const received: ReceivedMail[] = []
  let refusal: { code: number; message: string } | null = null
  let whileTaking = (): Promise<void> => Promise.resolve()
  const server = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    disableReverseLookup: true,
    onRcptTo(_address, _session, done) {
      if (refusal === null) return done()
      done(Object.assign(new Error(refusal.message), { responseCode: refusal.code }))
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address
        const to = session.envelope.rcptTo.map(each => each.address)
        void whileTaking().then(() => {
          received.push(parsed(from, to, Buffer.concat(chunks).toString('utf8')))
          done()
        })
      })
    },
  })
  server.on('error', () => undefined)
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const bound = (server.server.address() as AddressInfo).port
  return {
    url: `smtp://127.0.0.1:${bound}`,
    port: bound,
    received,
    refuseWith: answer => {
      refusal = answer
    },
    onData: fn => {
      whileTaking = fn
    },
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}

function parsed(from: string, to: readonly string[], raw: string): ReceivedMail {
  const { headers, body } = split(raw)
  return { from, to, raw, headers, parts: partsOf(headers, body) }
}

function split(raw: string): { headers: (readonly [string, string])[]; body: string } {
  const end = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  return {
    headers: lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), words(line.slice(line.indexOf(':') + 1).trim())] as const),
    body: raw.slice(end + 4),
  }
}

/** Decodes the encoded words of RFC 2047. */
function words(text: string): string {
  return text
    .replace(/(=\?utf-8\?[qb]\?[^?]*\?=)\s+(?==\?)/gi, '$1')
    .replace(/=\?utf-8\?([qb])\?([^?]*)\?=/gi, (_all, how: string, value: string) =>
      how.toLowerCase() === 'b' ? Buffer.from(value, 'base64').toString('utf8') : quoted(value.replace(/_/g, ' ')),
    )
}

function quoted(text: string): string {
  const bytes = text.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function partsOf(headers: readonly (readonly [string, string])[], body: string): Record<string, string> {
  const header = (name: string): string => headers.find(([each]) => each === name)?.[1] ?? ''
  const boundary = /boundary="?([^";]+)"?/.exec(header('content-type'))?.[1]
  if (boundary !== undefined)
    return Object.assign(
      {},
      ...body
        .split(`--${boundary}`)
        .slice(1, -1)
        .map(part => split(part.replace(/^\r\n/, '')))
        .map(part => partsOf(part.headers, part.body)),
    )
  const encoding = header('content-transfer-encoding').toLowerCase()
  const type = header('content-type').split(';')[0] ?? ''
  const text = encoding === 'base64' ? Buffer.from(body, 'base64').toString('utf8') : encoding === 'quoted-printable' ? quoted(body) : body
  return { [type]: text.replaceAll('\r\n', '\n') }
}
