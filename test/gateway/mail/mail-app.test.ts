import { expect, test } from 'vitest'
import { Mail } from '../../../src/gateway/mail/mail.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { startApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { startMailServer } from './mail-server.ts'

test('a running gateway sends the mails in its outbox, and stops cleanly even while it sends one', async () => {
  const server = await startMailServer()
  const app = await startApp({ env: { SMTP_URL: server.url, MAIL_FROM: 'Gateway <gateway@acme.test>', MAIL_POLL_MS: '20' } })
  const mail = new Mail({ db: app.db, clock: systemClock })
  const data = { orgName: 'Test Org', inviter: 'Ravi', role: 'member', link: `${app.baseUrl}/me/invitations` }
  const enqueue = (to: string): Promise<boolean> => app.db.tx(tx => mail.enqueue(tx, { orgId: app.orgId, to, template: 'invitation', data }))
  let isTaking = false
  let release = (): void => {}
  const isStopping = new Promise<void>(resolve => {
    release = resolve
  })
  try {
    await enqueue('asha@people.test')
    await until(() => server.received.length === 1, 'the mail arrives')
    expect(server.received[0]?.from).toBe('gateway@acme.test')
    server.onData(async () => {
      isTaking = true
      await isStopping
    })
    await enqueue('ravi@people.test')
    await until(() => isTaking, 'the second mail is under way')
  } finally {
    const stopped = app.stop()
    release()
    await stopped
    await server.close()
  }
  expect(server.received.map(got => got.to[0])).toEqual(['asha@people.test', 'ravi@people.test'])
  expect(app.logLines.join('\n')).not.toMatch(/asha|ravi@|SMTP_URL|job_failed|mail_poll_failed/)
})
