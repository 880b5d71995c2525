/** Describes in words which data the gateway stores. These sentences are promises, so they must match the schema and the code that deletes data. */
import type { Dpia } from './dpia/dpia-shape.ts'

/** Returns what the gateway stores of the content of calls when the retention window has `days` days. */
export function retentionOf(days: number): Dpia['content_retention'] {
  if (days === 0)
    return {
      mode: 'zero',
      days,
      stored: 'Nothing of the content of calls: neither prompts nor answers.',
      where: 'Nowhere here: content passes through the memory of the gateway to the providers named above. What they keep is for them to say.',
      readable_by: 'Nobody.',
    }
  return {
    mode: 'window',
    days,
    stored: `Prompts and answers of calls, at most 1 MiB of each, each for ${days} ${days === 1 ? 'day' : 'days'} from the call; they are deleted then, and immediately when the window is made shorter. Replies that a caller asked to keep for the same request (x-br-cache) for as long as it asked, at most a day and the window.`,
    where:
      'In the database of the gateway, encrypted with AES-256-GCM under its master key, and in backups of it for as long as those are kept. Not in logs, usage records, webhooks or any endpoint. What providers keep is for them to say.',
    readable_by: 'The operator of the gateway alone, a call at a time (brigade admin content), with a line in the audit trail of the organisation each time.',
  }
}

/** Returns what the gateway stores about every call, whatever its content is. */
export function usageRecords(keptDays: number): Dpia['usage_records'] {
  return {
    kept_days: keptDays,
    stored:
      'Per call: time, request id, kind, model, provider, residency, whose key, status, outcome, latency, tokens, images, seconds of audio, characters, searches, value, cost, what a stored reply saved, and the ids of organisation, person, key, workspace and agent, or the label that the caller gave its agent, which routes failed before it ended, and the id that the caller gave its run. Never content. Sums by hour are kept for 32 days, the sums of a run as long as its last call, and the ids of ended runs for 400 days. Sums by day are kept on, also of prompts that were sent out to have their tokens counted.',
  }
}

/** Returns the kind of memory store of an organisation and what it holds. */
export function memoryOf(store: Dpia['memory']['store']): Dpia['memory'] {
  if (store === null) return { configured: false, store, stored: 'Nothing: no store is configured.' }
  return {
    configured: true,
    store,
    stored:
      'What agents and people of the organisation write there, which may be anything that was said, until they delete it; what was replaced or deleted stays as a version for as long as the settings of the memory say. In the database of the gateway: names, sizes, hashes, times, and who wrote.',
  }
}

/** How long the gateway stores the data that has a fixed period. */
export interface KeepTimes {
  readonly auditDays: number
  readonly webhookDays: number
  readonly sessionS: number
  readonly journalMs: number
}

const untilRemoved = 'Until somebody changes or removes it.'
const forGood = 'For good.'

/** Returns the stored data that is neither content, nor usage records, nor memory: people, sessions, the audit trail, idempotency keys and so on. */
export function otherRecords({ auditDays, webhookDays, sessionS, journalMs }: KeepTimes): Dpia['other_records'] {
  return [
    {
      what: 'people',
      stored:
        'Address of mail, name, address of the picture, account at the service of sign-in, how they say they found it; role, capabilities, workspaces, and which of them a group at the service of sign-in gave; addresses of people who were invited.',
      kept: 'Permanently; a person who is removed from the organisation is marked as removed.',
    },
    {
      what: 'sessions',
      stored: 'Hash of the cookie, person, organisation, times.',
      kept: `${sessionS} seconds at most; links and states of sign-in some minutes.`,
    },
    {
      what: 'audit trail',
      stored: 'Of acts of management: who, what, on which ids, when, from which IP address, request id, outcome.',
      kept: `${auditDays} days. Signed roots over the lines about tools and over calls of tools, a day each, stay permanently.`,
    },
    {
      what: 'idempotency keys',
      stored:
        'Of calls that carry one: a hash of the key, an HMAC of the body under a key of the gateway (the body cannot be read from it), model, provider, tokens, cost, outcome. No answer.',
      kept: '24 hours.',
    },
    {
      what: 'keys, agents and servers',
      stored:
        'Names; hashes and first characters of API keys, last use; agents, whose tokens they trust; address and model of own servers; MCP servers with the definitions of their tools, and who is connected with them; keys at providers, of stores and of MCP servers, tokens of these connections and secrets of webhooks, encrypted.',
      kept: `${untilRemoved} Revoked keys and agents stay as entries.`,
    },
    {
      what: 'what people typed',
      stored:
        'Names of the organisation and its workspaces, and of the groups at a service of sign-in that give roles, chains, collections with their texts (public ones are read by everybody), coding profiles with their rules, reasons of requests for more budget.',
      kept: `${untilRemoved} Of collections the earlier versions too. Requests for more budget with their reasons: 30 days after the decision.`,
    },
    { what: 'mail', stored: 'Address, kind of mail, names and figures in it.', kept: '90 days after it was sent or given up.' },
    {
      what: 'webhooks',
      stored:
        'Addresses that the organisation gave; events with ids, counts, amounts and times, and how their deliveries went. They are sent to those addresses.',
      kept: `Addresses: ${untilRemoved.toLowerCase()} Events: ${webhookDays} days.`,
    },
    {
      what: 'billing',
      stored: 'Entries of the ledger (one per call that is charged), payments, invoices with legal name, address, address of mail and GSTIN.',
      kept: forGood,
    },
    {
      what: 'batches',
      stored:
        'Of batches and their files: ids, here and at the provider, counts, sizes, prices, amounts, times, and the ids of organisation, person, key and agent. Never requests or answers: these go through to the provider, which keeps them until the file expires.',
      kept: 'Batches for 30 days after their end; files until somebody deletes them, at most 30 days, and no longer than the data-retention window.',
    },
    {
      what: 'journals',
      stored: 'Usage records and budgets on their way into the database, on the disk of each process. Never content.',
      kept: `${Math.ceil(journalMs / 60_000)} minutes after they are in the database; records that it refused, until the operator has dealt with them.`,
    },
    {
      what: 'logs, traces, backups',
      stored: 'Log lines and, where the operator has set a collector, traces: ids, models, providers, statuses, times. Backups: all of the above.',
      kept: 'As the operator of the gateway has arranged.',
    },
  ]
}
