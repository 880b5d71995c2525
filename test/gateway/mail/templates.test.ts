import { describe, expect, test } from 'vitest'
import { isMailAddress, oneLine } from '../../../src/gateway/mail/safe-text.ts'
import { senderOf } from '../../../src/gateway/mail/smtp.ts'
import { renderMail } from '../../../src/gateway/mail/templates.ts'

const invitation = { orgName: 'Acme', inviter: 'ravi@acme.test', role: 'admin', link: 'https://gateway.test/invitations?a=1&b=2' }

describe('the texts of mails', () => {
  test('an invitation names the sender, the organisation, the role and a link, in text and HTML', () => {
    const mail = renderMail('invitation', invitation)
    expect(mail?.subject).toBe('ravi@acme.test invites you to Acme on Brigade')
    expect(mail?.text).toContain('as admin')
    expect(mail?.text).toContain('https://gateway.test/invitations?a=1&b=2')
    expect(mail?.html).toContain('href="https://gateway.test/invitations?a=1&amp;b=2"')
  })

  test('a notice about an unused key names the key, the day and what keeps it active', () => {
    const mail = renderMail('key_inactivity', {
      orgName: 'Acme',
      keyName: 'laptop',
      keyPrefix: 'br-abcd',
      disabledOn: '2026-12-05',
      link: 'https://gateway.test/keys',
    })
    expect(mail?.subject).toBe('API key laptop of Acme will be disabled on 2026-12-05')
    for (const word of ['laptop', 'br-abcd', '2026-12-05', 'one call']) expect(mail?.text).toContain(word)
  })

  test('a receipt names the amount, the payment, the invoice and a link to it', () => {
    const mail = renderMail('receipt', {
      orgName: 'Acme',
      amount: '₹1,00,000.00',
      paymentId: 'pay_1',
      invoiceNumber: 'BR/26-27/000001',
      seller: 'Fort Models LLP',
      paidOn: '22 November 2026',
      link: 'https://gateway.test/auth?return_to=%2Fme%2Finvoices%2Fpay_1',
    })
    expect(mail?.subject).toBe('Receipt: ₹1,00,000.00 for Acme, invoice BR/26-27/000001')
    for (const word of [
      '₹1,00,000.00',
      'pay_1',
      'BR/26-27/000001',
      '22 November 2026',
      'paid to Fort Models LLP',
      'ask one of its owners',
      'return_to=%2Fme%2Finvoices%2Fpay_1',
    ])
      expect(mail?.text).toContain(word)
  })

  test('markup in a name appears as text in the HTML', () => {
    const mail = renderMail('invitation', { ...invitation, orgName: '<script>alert(1)</script>', inviter: `"><img src=x onerror='alert(1)'>` })
    expect(mail?.html).not.toMatch(/<script|<img/)
    expect(mail?.html).toContain('&lt;script&gt;')
  })

  test('line breaks, control characters and characters that change the direction of text are removed from every value', () => {
    const orgName = 'Acme\r\nBcc: victim@x.test\r\n\r\nPay here\u2028now \u202etxt\u0000\u0007'
    const mail = renderMail('invitation', { ...invitation, orgName })
    expect(mail?.subject).toBe('ravi@acme.test invites you to Acme Bcc: victim@x.test Pay here now txt on Brigade')
    expect(mail?.text.split('\n').filter(line => line.startsWith('Bcc') || line.startsWith('Pay'))).toEqual([])
  })

  test('a subject is one line of at most 150 characters', () => {
    const mail = renderMail('invitation', { ...invitation, orgName: 'नाम'.repeat(400) })
    expect([...(mail?.subject ?? '')].length).toBeLessThanOrEqual(150)
    expect(oneLine('😀'.repeat(10), 5)).toBe('😀😀😀😀…')
  })

  test('a value that is not a web link, and an unknown template, give no mail', () => {
    expect(renderMail('invitation', { ...invitation, link: 'javascript:alert(1)' })).toBeNull()
    expect(renderMail('invitation', { orgName: 'Acme' })).toBeNull()
    expect(renderMail('newsletter', {})).toBeNull()
  })

  test('only a text with one plain address is accepted as an address', () => {
    for (const good of ['a@b.test', 'first.last+tag@sub.example.co.in', 'root@localhost', "o'neil@x.test"]) expect(isMailAddress(good), good).toBe(true)
    for (const bad of [
      '',
      'a',
      'a@',
      '@b',
      'a@b@c',
      'a b@c.test',
      'a@b.test,c@d.test',
      'A <a@b.test>',
      'a@b.test\r\nBcc: x@y.test',
      '"a"@b.test',
      'a@b..test',
      `${'a'.repeat(65)}@b.test`,
    ])
      expect(isMailAddress(bad), bad).toBe(false)
  })

  test('MAIL_FROM is an address, or a name with an address', () => {
    expect(senderOf('Brigade <no-reply@localhost>')).toEqual({ name: 'Brigade', address: 'no-reply@localhost' })
    expect(senderOf('"Acme, Inc" <gw@acme.test>')).toEqual({ name: 'Acme, Inc', address: 'gw@acme.test' })
    expect(senderOf('gw@acme.test')).toEqual({ name: '', address: 'gw@acme.test' })
    for (const bad of ['nobody', 'A <b>', '<>', 'a@b.test, c@d.test']) expect(() => senderOf(bad), bad).toThrow('MAIL_FROM')
  })
})
