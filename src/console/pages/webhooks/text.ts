import type { Tone } from '../../ui/data/status.tsx'
import { count } from '../../ui/format/numbers.ts'
import type { IconName } from '../../ui/icon.tsx'
import type { Delivery, Webhook } from './use-webhooks.ts'

/** Texts of webhooks and their deliveries. */
export const text = {
  title: 'Webhooks',
  intro: 'Addresses of yours that receive events. Brigade signs each delivery, and nothing that somebody said is in it.',
  onlyAdmins: 'Owners and admins see webhooks',
  create: 'Add an endpoint',
  createAct: 'Add endpoint',
  emptyTitle: 'No endpoint yet',
  empty: 'An endpoint receives an event when a budget ends, a key is revoked or a route fails, within seconds.',
  emptyCommand: 'node examples/webhook-receiver/receiver.mjs',
  columns: { url: 'Address', state: 'State', events: 'Events', dropped: 'Not queued', created: 'Added' },
  allEvents: 'all',
  someEvents: (many: number): string => (many === 1 ? '1 event' : `${count(many)} events`),
  form: {
    url: 'Address',
    urlHint: 'A public https address. It cannot be changed later.',
    urlPlaceholder: 'https://hooks.example.com/brigade',
    description: 'Description',
    descriptionHint: 'One line for people, such as who is on call.',
    events: 'It receives',
    kinds: [
      { value: 'all', label: 'All events', hint: 'Events of later versions, too.' },
      { value: 'some', label: 'Only these events' },
    ],
    none: 'Choose at least one event.',
    save: 'Save',
    saved: 'Saved. It applies to the next event.',
  },
  families: { budget: 'Budgets and runs', keys: 'Keys and access', billing: 'Billing', reliability: 'Reliability', tools: 'Tools', test: 'Tests' } as Readonly<
    Record<string, string>
  >,
  secret: {
    created: 'The endpoint is added',
    rotated: 'The new secret',
    about: 'Your receiver checks the signature of each delivery with it. Brigade keeps it sealed and shows it only now.',
    rotatedAbout: 'The old secret signs nothing any more. Give the new one to your receiver now.',
  },
  endpoint: 'Endpoint',
  gone: 'There is no such endpoint',
  goneHint: 'It was removed, or it belongs to another organisation.',
  tabs: { deliveries: 'Deliveries', settings: 'Settings' },
  more: 'More acts',
  test: 'Send a test',
  tested: 'A ping is on its way.',
  rotate: 'New secret',
  rotateAbout: 'The old secret signs nothing from now on. Until your receiver has the new one, it refuses what arrives.',
  disable: 'Disable',
  disableAbout: 'Waiting deliveries end, and events that happen meanwhile are not sent later. You can enable it again.',
  disabled: 'The endpoint is disabled.',
  enable: 'Enable',
  enabled: 'The endpoint is enabled. It receives the next event.',
  remove: 'Remove',
  removeTitle: 'Remove the endpoint',
  removeAbout: 'Waiting deliveries are not sent, and the list of its deliveries goes. You cannot undo this.',
  removed: 'The endpoint is removed.',
  dropped: (many: number): string =>
    many === 1
      ? '1 event was not queued, because 5,000 deliveries waited. Ask the API for the current state.'
      : `${count(many)} events were not queued, because 5,000 deliveries waited. Ask the API for the current state.`,
  deliveries: {
    emptyTitle: 'Nothing was sent yet',
    empty: 'Send a test: its delivery appears here with what your receiver answered.',
    columns: { event: 'Event', state: 'State', code: 'Answer', attempts: 'Attempts', next: 'Next attempt', time: 'Queued' },
    none: 'none',
    noCode: 'no answer',
  },
  delivery: {
    again: 'Send again',
    againDone: 'It is queued with a new signature. The ids are the same.',
    attempts: 'Attempts',
    noAttempt: 'Nobody was called yet.',
    attempt: (number: number): string => `Attempt ${number}`,
    ms: (ms: number): string => `${count(ms)} ms`,
    payload: 'Payload, as sent',
    noPayload: 'The event is not kept any more, so its payload is gone.',
    event: 'Event id',
    queued: 'Queued',
    next: 'Next attempt',
    answer: 'Answer',
    note: 'Brigade keeps the status of an answer, and never its text.',
    askEnable: 'The endpoint is disabled. Enable it to send again.',
  },
} as const

interface Shown {
  readonly tone: Tone
  readonly icon?: IconName
  readonly word: string
  readonly means: string
}

/** The state of a delivery, in words. */
export const deliveryShown: Readonly<Record<Delivery['status'], Shown>> = {
  pending: { tone: 'quiet', icon: 'clock', word: 'Waiting', means: 'It was not sent yet.' },
  acknowledged: { tone: 'good', word: 'Delivered', means: 'Your receiver answered with a 2xx.' },
  failed: { tone: 'warn', word: 'Will be repeated', means: 'The last attempt failed. Brigade tries again.' },
  dead: { tone: 'bad', word: 'Not delivered', means: 'Brigade does not try again by itself.' },
}

const reasons: Readonly<Record<string, string>> = {
  http_status: 'The answer was no 2xx.',
  redirect: 'The answer was a redirect, which is never followed.',
  gone: 'The receiver says that the address is gone (410).',
  timeout: 'No answer came in time.',
  connection_refused: 'The receiver refused the connection.',
  connection_reset: 'The receiver ended the connection.',
  connection_failed: 'The connection failed.',
  unknown_host: 'The name of the host is unknown.',
  tls: 'The certificate of the receiver is not valid.',
  bad_reply: 'The answer was no HTTP.',
  blocked_address: 'The address is internal, so Brigade does not call it.',
  endpoint_disabled: 'The endpoint was disabled.',
  endpoint_deleted: 'The endpoint was removed.',
}

/** Says why an attempt failed. A code of a later version is shown as it is. */
export const whyText = (code: string): string => reasons[code] ?? code

const disabledReasons: Readonly<Record<string, string>> = {
  gone: 'It was disabled, because the receiver said that the address is gone (410).',
  too_many_failures: 'It was disabled, because too many deliveries failed in a row.',
}

/** The state of an endpoint, in words. */
export function webhookShown({ enabled, disabled_reason: reason }: Pick<Webhook, 'enabled' | 'disabled_reason'>): Shown {
  if (enabled) return { tone: 'good', word: 'On', means: 'It receives events.' }
  const why = reason === null ? undefined : disabledReasons[reason]
  return why === undefined
    ? { tone: 'quiet', word: 'Off', means: 'A person disabled it. It receives nothing.' }
    : { tone: 'bad', word: 'Off', means: `${why} Repair the receiver, then enable it.` }
}

/** Returns the payload with one field on a line. A text that is no JSON stays as it is. */
export function prettyJson(payload: string): string {
  try {
    return JSON.stringify(JSON.parse(payload), null, 2)
  } catch {
    return payload
  }
}
