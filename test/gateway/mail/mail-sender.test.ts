import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Mail, type NewMail } from '../../../src/gateway/mail/mail.ts'
import { MailSender } from '../../../src/gateway/mail/mail-sender.ts'
import { smtpDelivery } from '../../../src/gateway/mail/smtp.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { makeLog } from '../../../src/platform/observe/log.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { until } from '../../harness/until.ts'
import { type MailServer, startMailServer } from './mail-server.ts'

const states = statement<[], { to: string; attempts: number; due: Date | null; sent: Date | null; failed: Date | null; lastError: string | null }>(
  'test.mail_states',
  `select to_address as "to", attempts as "attempts", due_at as "due", sent_at as "sent", failed_at as "failed", last_error as "lastError" from emails order by id`,
)
const invitation = { orgName: 'Acme', inviter: 'Ravi', role: 'member', link: 'https://gateway.test/invitations' }
const minuteMs = 60_000

describe('the outbox of mail', () => {
  let database: TestDatabase
  let server: MailServer
  let clock: MovableClock
  let logLines: string[]
  let mail: Mail

  beforeAll(async () => {
    database = await testDatabase()
  })
  afterAll(() => database.dispose())
  beforeEach(async () => {
    server = await startMailServer()
    clock = movableClock()
    logLines = []
    mail = new Mail({ db: database.db, clock })
  })
  afterEach(async () => {
    await Promise.all([database.db.script('delete from emails'), server.close()])
  })

  const senderOn = (db: Db, url: string | null = server.url): MailSender =>
    new MailSender({
      db,
      clock,
      log: makeLog('info', { write: line => logLines.push(line) }),
      deliver: url === null ? null : smtpDelivery(new Secret(url), 'Brigade <no-reply@gateway.test>'),
      pollMs: 20,
    })
  const enqueue = (more: Partial<NewMail<'invitation'>> = {}): Promise<boolean> =>
    database.db.tx(tx => mail.enqueue(tx, { orgId: null, to: 'asha@people.test', template: 'invitation', data: invitation, ...more }))

  test('a mail arrives as text and as HTML, with a Message-ID from its row and a header that marks it as automatic', async () => {
    await enqueue()
    expect(await senderOn(database.db).sendDue()).toBe(1)
    const [got] = server.received
    expect(got?.to).toEqual(['asha@people.test'])
    expect(got?.from).toBe('no-reply@gateway.test')
    expect(got?.parts['text/plain']).toContain('https://gateway.test/invitations')
    expect(got?.parts['text/html']).toContain('<a href="https://gateway.test/invitations"')
    const header = (name: string) => got?.headers.filter(([each]) => each === name).map(([, value]) => value)
    expect(header('subject')).toEqual(['Ravi invites you to Acme on Brigade'])
    expect(header('message-id')?.[0]).toMatch(/^<\d+\.\d+@gateway\.test>$/)
    expect(header('auto-submitted')).toEqual(['auto-generated'])
    const [row] = await database.db.many(states)
    expect([row?.attempts, row?.due, row?.lastError]).toEqual([1, null, null])
    expect(row?.sent).not.toBeNull()
    expect(await senderOn(database.db).sendDue()).toBe(0)
  })

  test('a name with line breaks cannot add a header, a recipient or a line', async () => {
    const orgName = 'Acme\r\nBcc: victim@x.test\r\nX-Evil: 1\r\n\r\n<script>alert(1)</script>'
    await enqueue({ data: { ...invitation, orgName, inviter: 'ना\u2028म\nX-Other: 2' } })
    await senderOn(database.db).sendDue()
    const [got] = server.received
    expect(got?.to).toEqual(['asha@people.test'])
    expect(got?.headers.map(([name]) => name).filter(name => ['bcc', 'x-evil', 'x-other'].includes(name))).toEqual([])
    expect(got?.headers.filter(([name]) => name === 'subject')).toHaveLength(1)
    expect(got?.parts['text/html']).not.toContain('<script')
  })

  test('a text with more than one address is refused when the mail is made', async () => {
    for (const to of ['a@b.test, c@d.test', 'a@b.test\r\nBcc: c@d.test', 'Ravi <a@b.test>'])
      await expect(enqueue({ to })).rejects.toMatchObject({ code: 'bad_email' })
    expect(await database.db.many(states)).toEqual([])
  })

  test('a transaction that rolls back sends nothing', async () => {
    const done = database.db.tx(async tx => {
      await mail.enqueue(tx, { orgId: null, to: 'asha@people.test', template: 'invitation', data: invitation })
      throw new Error('changed my mind')
    })
    await expect(done).rejects.toThrow('changed my mind')
    expect(await senderOn(database.db).sendDue()).toBe(0)
    expect(server.received).toEqual([])
  })

  test('a second mail with the same `onceKey` is not made', async () => {
    expect(await enqueue({ onceKey: 'invitation:1' })).toBe(true)
    expect(await enqueue({ onceKey: 'invitation:1' })).toBe(false)
    await enqueue({ onceKey: 'invitation:2' })
    await senderOn(database.db).sendDue()
    expect(server.received).toHaveLength(2)
  })

  test('while the server is down, the pauses between attempts grow; when the server is up again, the mail arrives once', async () => {
    const { url, port } = server
    await server.close()
    await enqueue()
    const sender = senderOn(database.db, url)
    for (const waitMs of [minuteMs, 5 * minuteMs]) {
      expect(await sender.sendDue()).toBe(1)
      const [row] = await database.db.many(states)
      expect(Math.round(((row?.due?.getTime() ?? 0) - clock.nowMs()) / 1000)).toBe(waitMs / 1000)
      expect(await sender.sendDue()).toBe(0)
      clock.advance(waitMs + 1000)
    }
    server = await startMailServer(port)
    expect(await sender.sendDue()).toBe(1)
    expect(await sender.sendDue()).toBe(0)
    expect(server.received).toHaveLength(1)
  })

  test('after the last pause, a mail is given up, and neither the row nor the log contains its content', async () => {
    server.refuseWith({ code: 451, message: 'not now, asha@people.test' })
    await enqueue()
    const sender = senderOn(database.db)
    for (let attempt = 1; attempt <= 6; attempt++) {
      expect(await sender.sendDue()).toBe(1)
      clock.advance(9 * 60 * minuteMs)
    }
    expect(await sender.sendDue()).toBe(0)
    const [row] = await database.db.many(states)
    expect([row?.attempts, row?.due, row?.sent, row?.lastError]).toEqual([6, null, null, 'EENVELOPE 451 RCPT TO'])
    expect(row?.failed).not.toBeNull()
    expect(logLines.join('')).toContain('mail_given_up')
    expect(logLines.join('')).not.toMatch(/asha|Acme|Ravi|invitations/)
    expect(await mail.counts()).toEqual({ waiting: 0, failed: 1 })
  })

  test('a mail to a mailbox that does not exist is not tried again', async () => {
    server.refuseWith({ code: 550, message: '5.1.1 no such user' })
    await enqueue()
    await senderOn(database.db).sendDue()
    const [row] = await database.db.many(states)
    expect([row?.attempts, row?.due]).toEqual([1, null])
    expect(row?.failed).not.toBeNull()
  })

  test('several concurrent senders send each mail once', async () => {
    for (let i = 0; i < 24; i++) await enqueue({ to: `person-${i}@people.test` })
    const other = database.kind === 'postgres' ? await database.open() : database.db
    const tried = await Promise.all([database.db, other, database.db, other].map(db => senderOn(db).sendDue()))
    expect(tried.reduce((sum, count) => sum + count)).toBe(24)
    expect(new Set(server.received.flatMap(got => got.to)).size).toBe(24)
    expect(server.received).toHaveLength(24)
  })

  test('when a sender dies after the server accepted a mail, the mail is sent again with the same Message-ID', async () => {
    await enqueue()
    const lost = statement<[]>('test.lose_sent', `update emails set sent_at = null, due_at = now() - interval '1 hour'`)
    await senderOn(database.db).sendDue()
    await database.db.exec(lost)
    await senderOn(database.db).sendDue()
    const ids = server.received.map(got => got.headers.find(([name]) => name === 'message-id')?.[1])
    expect(ids).toHaveLength(2)
    expect(ids[0]).toBe(ids[1])
  })

  test('a slow process with an outdated claim does not change the result of another process', async () => {
    await enqueue()
    const slow = senderOn(database.db)
    server.onData(async () => {
      server.onData(() => Promise.resolve())
      clock.advance(6 * minuteMs)
      server.refuseWith({ code: 451, message: 'later' })
      await senderOn(database.db).sendDue()
    })
    await slow.sendDue()
    const [row] = await database.db.many(states)
    expect([row?.attempts, row?.sent, row?.lastError]).toEqual([2, null, 'EENVELOPE 451 RCPT TO'])
  })

  test('a started sender polls by itself until it is stopped', async () => {
    const stop = senderOn(database.db).start()
    await enqueue()
    await until(() => server.received.length === 1, 'the mail arrives')
    await stop()
    await enqueue()
    expect(await mail.counts()).toEqual({ waiting: 1, failed: 0 })
  })

  test('without SMTP_URL mail waits, which is no line in the log', async () => {
    await enqueue()
    const stop = senderOn(database.db, null).start()
    expect(await senderOn(database.db, null).sendDue()).toBe(0)
    await stop()
    expect(logLines).toEqual([])
    const [row] = await database.db.many(states)
    expect([row?.attempts, row?.sent, row?.failed]).toEqual([0, null, null])
  })

  test('old mails that were sent or given up are deleted, and waiting mails are not', async () => {
    await enqueue()
    await senderOn(database.db).sendDue()
    await enqueue({ to: 'waits@people.test' })
    clock.advance(91 * 24 * 60 * minuteMs)
    expect(await senderOn(database.db).sweep()).toBe(1)
    expect((await database.db.many(states)).map(row => row.to)).toEqual(['waits@people.test'])
  })

  test('an invalid SMTP URL or sender is reported at the start', () => {
    expect(() => smtpDelivery(new Secret('http://mail.test'), 'a@b.test')).toThrow('SMTP_URL must be an smtp:// or smtps:// URL')
    expect(() => smtpDelivery(new Secret('smtp://mail.test'), 'nobody')).toThrow('MAIL_FROM')
  })
})
