import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Sent, send } from '../../chaos/client.ts'
import { chaosAnswer } from '../../chaos/stage.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet, tokenUinr } from '../../harness/fleet.ts'

const lanes = 8

describe.runIf(onPostgres)('SETTLE=postgres', () => {
  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet({ SETTLE: 'postgres' })
    fleet.upstream.script(chaosAnswer)
  })
  afterAll(() => fleet?.stop())

  /** Sends calls continuously. At the last byte of the complete reply with the number `after`, it kills the process and removes its disk. */
  async function dieAt(after: number, stream: boolean, tag: string): Promise<readonly Sent[]> {
    const folder = fleet.newFolder()
    const victim = await fleet.start({}, folder)
    let lastBytes = 0
    let isDead = false
    const complete: Sent[] = []
    const lane = async (index: number): Promise<void> => {
      for (let i = 0; !isDead; i++) {
        const step = { label: `${tag}-${index}-${i}`, caller: 'free', target: 0, tokens: 20 + i, stream, slow: false, once: false, hangsUp: false } as const
        const reply = await send(victim.baseUrl, fleet.key, step, 0, text => {
          if (isDead || !(stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}')) || ++lastBytes < after) return
          isDead = true
          victim.child.kill('SIGKILL')
        })
        if (reply.isComplete) complete.push(reply)
      }
    }
    await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)))
    await victim.kill()
    renameSync(join(folder, 'journal'), `${fleet.newFolder()}/lost`)
    return complete
  }

  test.for([
    [12, true],
    [31, false],
    [5, false],
    [23, true],
  ] as const)(
    'every reply that a client has in full is charged when process and disk are lost at its last byte (%i replies, stream %s)',
    async ([after, stream]) => {
      const complete = await dieAt(after, stream, `${stream ? 'stream' : 'plain'}${after}`)
      // No process adopts the journal, so the database already has every row that it will ever have.
      const rows = await fleet.usage()
      expect(complete.length).toBeGreaterThanOrEqual(after)
      for (const { step } of complete)
        expect(rows.filter(row => row.label === step.label)).toMatchObject([{ outcome: 'ok', estimated: false, valueUinr: BigInt(step.tokens) * tokenUinr }])
      expect(await fleet.violations()).toEqual([])
    },
  )
})
