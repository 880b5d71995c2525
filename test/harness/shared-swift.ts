/** One Swift for a whole test run, because it takes seconds to start and each test needs only a bucket. It starts when the first test requests it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// biome-ignore lint/correctness/useImportExtensions: the script is JavaScript; its types are in the .d.mts beside it.
import { startSwift } from '../../scripts/swift-s3.mjs'

export interface SwiftAddress {
  readonly endpoint: string
  readonly hostPort: string
  readonly accessKey: string
  readonly secretKey: string
  readonly region: string
}

/** Starts a server that answers every GET with the address of the Swift of this run, as JSON. The process that runs the tests calls it. */
export async function offerSwift(): Promise<{ url: string; stop(): Promise<void> }> {
  const root = mkdtempSync(join(tmpdir(), 'brigade-swift-'))
  let running: ReturnType<typeof startSwift> | null = null
  const server = createServer((_request, response) => {
    running ??= startSwift(root)
    running.then(
      ({ stop: _stop, ...address }) => response.end(JSON.stringify(address)),
      (error: unknown) => {
        running = null
        response.writeHead(500).end(String(error))
      },
    )
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close()
      await (await running?.catch(() => null))?.stop()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** Returns the address of the Swift of this run. */
export async function sharedSwift(url: string): Promise<SwiftAddress> {
  const reply = await fetch(url)
  if (!reply.ok) throw new Error(`Swift did not start: ${await reply.text()}`)
  return (await reply.json()) as SwiftAddress
}
