import { BrigadeError } from './brigade-error.ts'
import type { MemoryClient } from './memory-client.ts'

const attemptsMax = 10

/**
 * Moves one object to a key that is free. What others write to it meanwhile goes along, and nothing is lost: the old key goes only when the new one has
 * what stood there. Throws BrigadeError, `memory_conflict` with status 412 when the new key is taken.
 */
export async function moveObject(memory: MemoryClient, from: string, to: string): Promise<void> {
  let copyEtag: string | null = null
  for (let attempt = 1; ; attempt++) {
    const current = await memory.read(from)
    // Somebody else deleted it: after the copy that is as good as done, before it there is nothing to move.
    if (current === null) return
    copyEtag = (await memory.write(to, current.bytes, copyEtag === null ? { createOnly: true } : { ifMatch: copyEtag })).etag
    try {
      await memory.remove(from, { ifMatch: current.etag })
      return
    } catch (failure) {
      if (failure instanceof BrigadeError && failure.status === 412 && attempt < attemptsMax) continue
      // It cannot go, because it is a record for example: then there must be no second one of it. Where nobody knows whether it went, the copy may be all there is.
      if (failure instanceof BrigadeError && failure.status < 500) await memory.remove(to, { ifMatch: copyEtag }).catch(() => undefined)
      throw failure
    }
  }
}
