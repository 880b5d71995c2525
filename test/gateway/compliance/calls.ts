import { expect } from 'vitest'
import type { TestApp } from '../../harness/app.ts'

export const dayMs = 24 * 3600_000

/** The caller whose key is used. */
export interface Caller {
  readonly key: string
}

export const home = (app: TestApp): Caller => ({ key: app.key })

/** Makes one call that only this provider may serve. */
export async function chat(app: TestApp, { key }: Caller, provider: string, model = 'test-model', headers: Record<string, string> = {}): Promise<void> {
  const reply = await app.call(
    'POST',
    '/v1/chat/completions',
    { model, provider, messages: [{ role: 'user', content: 'secret words' }] },
    { token: key, headers },
  )
  expect(reply.status, reply.text).toBe(200)
}
