/** The texts of mails: pure functions from checked values to subject, text and HTML. */
import { z } from 'zod'
import { escapeHtml, oneLine } from './safe-text.ts'

export interface RenderedMail {
  /** One line. */
  readonly subject: string
  readonly text: string
  readonly html: string
}

interface Letter {
  readonly subject: string
  readonly paragraphs: readonly string[]
  /** The one thing that the reader can do, as a link. The text of the mail also shows the address of the link. */
  readonly action: { readonly label: string; readonly link: string }
  /** Why the reader receives this mail. */
  readonly footer: string
}

const line = z.string().transform(text => oneLine(text))
const link = z.url({ protocol: /^https?$/ })

const shapes = {
  invitation: z.object({ orgName: line, inviter: line, role: line, link }),
  webhook_disabled: z.object({ orgName: line, endpointId: z.int(), host: line, why: line, link }),
  key_inactivity: z.object({ orgName: line, keyName: line, keyPrefix: line, disabledOn: line, link }),
  receipt: z.object({ orgName: line, amount: line, paymentId: line, invoiceNumber: line, seller: line, paidOn: line, link }),
  payment_returned: z.object({
    orgName: line,
    amount: line,
    paymentId: line,
    returnId: line,
    kind: z.enum(['refund', 'dispute']),
    direction: z.enum(['taken', 'given']),
    link,
  }),
  low_balance: z.object({ orgName: line, balance: line, threshold: line, link }),
  collection_alert: z.object({
    orgName: line,
    collection: line,
    state: z.enum(['firing', 'recovered']),
    metric: line,
    value: line,
    threshold: line,
    step: line,
    minutes: line,
    link,
  }),
}

/** The values that each template needs: names, amounts and links. A value is never a secret that gives more rights than the mail needs. */
export type MailData = { readonly [T in keyof typeof shapes]: Readonly<z.input<(typeof shapes)[T]>> }
export type MailTemplate = keyof MailData

const letters: { readonly [T in MailTemplate]: (data: z.output<(typeof shapes)[T]>) => Letter } = {
  invitation: ({ orgName, inviter, role, link: to }) => ({
    subject: `${inviter} invites you to ${orgName} on Brigade`,
    paragraphs: [
      `${inviter} invites you to the organisation ${orgName} as ${role}.`,
      'Sign in with this mail address to accept or decline. If you do not know the sender, do nothing.',
    ],
    action: { label: 'Open the invitation', link: to },
    footer: `You have this mail because somebody at ${orgName} wrote down your address. Nothing happens unless you accept.`,
  }),
  webhook_disabled: ({ orgName, endpointId, host, why, link: to }) => ({
    subject: `Webhook ${endpointId} of ${orgName} was disabled`,
    paragraphs: [
      `The webhook ${endpointId} of ${orgName}, which sends to ${host}, was disabled: ${why}.`,
      'Nothing is sent to it any more, and what was waiting for it was given up. When its receiver works again, enable the webhook; single deliveries can then be sent again.',
    ],
    action: { label: 'Look at the webhooks', link: to },
    footer: `You have this mail because you are an owner of ${orgName}.`,
  }),
  key_inactivity: ({ orgName, keyName, keyPrefix, disabledOn, link: to }) => ({
    subject: `API key ${keyName} of ${orgName} will be disabled on ${disabledOn}`,
    paragraphs: [
      `The API key ${keyName} (${keyPrefix}…) of ${orgName} has not been used for a long time. It will be disabled on ${disabledOn}.`,
      'To keep it, make one call with it before that day. A disabled key can be enabled again by an owner or admin; a key that nobody needs is best revoked.',
    ],
    action: { label: 'Look at the keys', link: to },
    footer: `You have this mail because ${orgName} disables keys that are not used.`,
  }),
  low_balance: ({ orgName, balance, threshold, link: to }) => ({
    subject: `The balance of ${orgName} is low: ${balance} left`,
    paragraphs: [
      `The prepaid balance of ${orgName} has fallen to ${balance}, below the threshold of ${threshold}.`,
      'When nothing is left, calls to models that cost money are refused until an owner tops up. Calls on your own provider keys go on.',
    ],
    action: { label: 'Look at the balance and top up', link: to },
    footer: `You have this mail because ${orgName} asked for a low-balance warning. It comes at most once in 24 hours; an owner can change or clear the threshold.`,
  }),
  collection_alert: ({ orgName, collection, state, metric, value, threshold, step, minutes, link: to }) => ({
    subject:
      state === 'firing' ? `Collection ${collection} of ${orgName}: ${metric} is ${value}` : `Collection ${collection} of ${orgName}: ${metric} is well again`,
    paragraphs:
      state === 'firing'
        ? [
            `The ${metric} of the collection ${collection} of ${orgName} has reached ${value}; the alert is set to ${threshold}. The step ${step} does worst.`,
            `Canaries of the last ${minutes} minutes were looked at. You get another mail only if it stays like that for long, and when it is over.`,
          ]
        : [`The ${metric} of the collection ${collection} of ${orgName} is down to ${value}, below the ${threshold} that the alert is set to.`],
    action: { label: 'Look at the health of its steps', link: to },
    footer: `You have this mail because an alert of ${orgName} names you or, as it names nobody else, its owners. An owner or admin can delete the alert.`,
  }),
  payment_returned: ({ orgName, amount, paymentId, returnId, kind, direction, link: to }) => ({
    subject: direction === 'taken' ? `${amount} was taken from the balance of ${orgName}` : `${amount} is back in the balance of ${orgName}`,
    paragraphs: [
      direction === 'taken'
        ? `The payment ${paymentId} of ${orgName} ${kind === 'refund' ? 'was refunded' : 'is disputed at the bank of its payer'} (${returnId}), so ${amount} was taken from the prepaid balance.`
        : `The ${kind} ${returnId} of the payment ${paymentId} of ${orgName} is over and the money stays, so ${amount} was added to the prepaid balance again.`,
      direction === 'taken'
        ? 'A bonus that came with the payment goes with it in the same proportion. When the balance is zero or below, calls to models that cost money are refused until an owner tops up.'
        : 'A bonus that had gone with the payment came back in the same proportion.',
    ],
    action: { label: 'Look at the balance and its ledger', link: to },
    footer: `You have this mail because you are an owner of ${orgName} or its address for bills.`,
  }),
  receipt: ({ orgName, amount, paymentId, invoiceNumber, seller, paidOn, link: to }) => ({
    subject: `Receipt: ${amount} for ${orgName}, invoice ${invoiceNumber}`,
    paragraphs: [
      `${amount} was paid to ${seller} for ${orgName} on ${paidOn} and has been credited.`,
      `Payment ${paymentId}, invoice ${invoiceNumber}.`,
      'Members of the organisation can open, print and save the invoice after signing in. If you are not, ask one of its owners for it: this mail alone does not open it.',
    ],
    action: { label: 'Open the invoice', link: to },
    footer: `You have this mail because you are an owner of ${orgName} or its address for bills.`,
  }),
}

/** Returns the values in the form that the template uses, each on one line. Returns null when the values do not fit the template. */
export function checkedMailData(template: MailTemplate, data: unknown): object | null {
  const checked = shapes[template].safeParse(data)
  return checked.success ? checked.data : null
}

/** Returns the mail of an outbox row. Returns null when the template does not exist or the values do not fit it. */
export function renderMail(template: string, data: unknown): RenderedMail | null {
  switch (template) {
    case 'invitation':
      return render(shapes.invitation, letters.invitation, data)
    case 'webhook_disabled':
      return render(shapes.webhook_disabled, letters.webhook_disabled, data)
    case 'key_inactivity':
      return render(shapes.key_inactivity, letters.key_inactivity, data)
    case 'receipt':
      return render(shapes.receipt, letters.receipt, data)
    case 'payment_returned':
      return render(shapes.payment_returned, letters.payment_returned, data)
    case 'low_balance':
      return render(shapes.low_balance, letters.low_balance, data)
    case 'collection_alert':
      return render(shapes.collection_alert, letters.collection_alert, data)
    default:
      return null
  }
}

const subjectLengthMax = 150

function render<D>(shape: z.ZodType<D>, letterOf: (data: D) => Letter, data: unknown): RenderedMail | null {
  const checked = shape.safeParse(data)
  if (!checked.success) return null
  const { subject, paragraphs, action, footer } = letterOf(checked.data)
  return {
    subject: oneLine(subject, subjectLengthMax),
    text: `${paragraphs.join('\n\n')}\n\n${action.label}:\n${action.link}\n\n-- \n${footer}\n`,
    html: page(
      [
        ...paragraphs.map(paragraph => `<p>${escapeHtml(paragraph)}</p>`),
        `<p><a href="${escapeHtml(action.link)}" rel="noreferrer">${escapeHtml(action.label)}</a></p>`,
        `<p style="font-size:smaller">${escapeHtml(action.link)}</p>`,
        `<hr><p style="font-size:smaller">${escapeHtml(footer)}</p>`,
      ].join('\n'),
    ),
  }
}

/** Returns the HTML page of a mail. The page has no image, script or remote style, so opening the mail sends no request. */
function page(body: string): string {
  return `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"></head><body style="font-family:sans-serif;max-width:40em">\n${body}\n</body></html>\n`
}
