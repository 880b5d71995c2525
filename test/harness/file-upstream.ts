/** A provider that takes files, over real HTTP. A test decides when and how it answers. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FileUpstream {
  /** Ends in /v1. */
  readonly url: string
  /** The forms of whole uploads by the id of the file, with the names of their fields. */
  readonly files: Map<string, ReadonlyMap<string, string>>
  /** Requests to delete a file, with the credential. */
  readonly deletes: { readonly id: string; readonly credential: string }[]
  /** Is awaited when a whole form has arrived, before the reply. */
  onUpload: () => void | Promise<void>
  /** Credentials that this provider refuses with 401. */
  readonly revoked: Set<string>
  close(): Promise<void>
}

export async function startFileUpstream(): Promise<FileUpstream> {
  const files: FileUpstream['files'] = new Map()
  const deletes: { id: string; credential: string }[] = []
  const state = { files, deletes, onUpload: (): void | Promise<void> => {}, revoked: new Set<string>() }
  let made = 0
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const credential = String(request.headers.authorization)
    const id = request.url?.split('/')[3] ?? ''
    if (request.method === 'DELETE') deletes.push({ id, credential })
    if (state.revoked.has(credential)) return json(response, 401, { error: { message: 'revoked' } })
    if (request.method === 'POST') {
      const form = fieldsOf(Buffer.concat(pieces).toString('utf8'), request.headers['content-type'] ?? '')
      await state.onUpload()
      const uploaded = `file-own${++made}`
      files.set(uploaded, form)
      return json(response, 200, { id: uploaded, object: 'file' })
    }
    if (request.method === 'DELETE') return json(response, files.delete(id) ? 200 : 404, { id, deleted: true })
    json(response, 200, { object: 'list', data: [{ id: 'gpt-batch-upstream', object: 'model' }] })
  }
  // The gateway ends a refused upload in the middle, which is an error here.
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

/** Returns the fields of a form by name. Throws when the form is cut. */
export function fieldsOf(text: string, type: string): ReadonlyMap<string, string> {
  const boundary = /boundary=(\S+)/.exec(type)?.[1] ?? ''
  if (!text.endsWith(`\r\n--${boundary}--\r\n`)) throw new Error('the form is cut')
  const parts = text.split(`--${boundary}`).slice(1, -1)
  return new Map(parts.map(part => [/ name="([^"]+)"/.exec(part)?.[1] ?? '', part.slice(part.indexOf('\r\n\r\n') + 4).replace(/\r\n$/, '')]))
}

function json(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}
