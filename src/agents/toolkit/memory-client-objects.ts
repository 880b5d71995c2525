import { BrigadeError } from './brigade-error.ts'
import type { GatewayClient } from './gateway-client.ts'
import { conditionHeaders, memoryRoot, objectOf, signalled } from './memory-client-replies.ts'
import type { MemoryObjects, MemoryWritten } from './memory-client-shapes.ts'

/** Reads and writes of single objects, see MemoryObjects. */
export function memoryObjects(client: GatewayClient): MemoryObjects {
  const write: MemoryObjects['write'] = async (key, content, conditions = {}) => {
    const reply = await client.send('PUT', `${memoryRoot}/o`, {
      query: { key },
      // Without a type, fetch would name one for text and none for bytes; the gateway takes both as they are.
      headers: { 'content-type': 'application/octet-stream', ...conditionHeaders(conditions) },
      body: content,
      ...signalled(conditions.signal),
    })
    return { ...((await reply.json()) as Omit<MemoryWritten, 'etag'>), etag: reply.headers.get('etag') ?? '' }
  }
  const read: MemoryObjects['read'] = async (key, { version, signal } = {}) => {
    try {
      const path = version === undefined ? 'o' : 'history'
      return await objectOf(key, await client.send('GET', `${memoryRoot}/${path}`, { query: { key, version }, ...signalled(signal) }))
    } catch (failure) {
      if (failure instanceof BrigadeError && failure.code === 'not_found') return null
      throw failure
    }
  }
  const remove: MemoryObjects['remove'] = async (key, { ifMatch, eraseHistory, signal } = {}) => {
    await client.json('DELETE', `${memoryRoot}/o`, {
      query: { key, history: eraseHistory === true ? 'erase' : undefined },
      headers: conditionHeaders({ ifMatch }),
      ...signalled(signal),
    })
  }
  return { read, write, remove }
}
