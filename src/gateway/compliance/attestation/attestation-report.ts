/** An attestation as a page to read and keep: the facts, the signatures, and the signed JSON at the end. */

import { indiaRule, markdownTable, markdownText, percent } from '../markdown.ts'
import type { Attestation, AttestationPayload } from './attestation-shape.ts'

/** Returns the report in Markdown. `brigade verify` accepts this report as well as the JSON. */
export function attestationReport(attestation: Attestation): string {
  const { payload, ed25519 } = attestation
  const { summary, period } = payload
  return `${[
    '# Residency attestation',
    `Organisation ${payload.org_id} at ${markdownText(payload.issuer)}. Window ${payload.window}: the IST days ${period.from} to ${period.to}, ` +
      `from ${period.from_at} until ${period.until_at}. Made ${payload.generated_at}.`,
    '## Where calls were served',
    markdownTable(
      ['', 'requests', 'share'],
      [
        ['in India', summary.india_requests, percent(summary.india_pct)],
        ['not proven to be in India', summary.global_requests, percent(summary.global_pct)],
        ['total', summary.total, percent(summary.total === 0 ? 0 : 100)],
      ],
    ),
    `Of those not proven to be in India, ${summary.declared_requests} went to servers of the organisation of which it says itself that they are there, and ` +
      `${summary.unknown_requests} to providers whose place is not known. ${indiaRule}`,
    `Beside these calls ${payload.token_counts.total} prompts were sent to a provider to have their tokens counted, ${payload.token_counts.global_requests} of them to ` +
      'one that is not proven to be in India.',
    '## Evidence',
    evidenceSentence(payload),
    ...(payload.evidence.items.length === 0 ? [] : [evidenceTable(payload)]),
    '## Signatures',
    markdownTable(
      ['algorithm', 'key', 'signature'],
      [
        ['Ed25519 (EdDSA)', ed25519.key_id, ed25519.signature],
        [attestation.alg, attestation.key_id, attestation.signature],
      ],
    ),
    '## How to verify',
    'Both signatures are over the `payload` of the JSON below, as RFC 8785 writes it. The Ed25519 signature is checked by anybody, without this gateway: keep the ' +
      `key set of ${markdownText(ed25519.jwks_url)} as keys.json, then run \`brigade verify report.md --keys keys.json\`, or the program ` +
      '`examples/verify-attestation.mjs` on the JSON. Only the JSON is signed; the text above it says the same. The HMAC is checked by the operator of the ' +
      'gateway alone, who has its secret: `brigade admin check-attestation report.md`.',
    `\`\`\`json\n${JSON.stringify(attestation)}\n\`\`\``,
  ].join('\n\n')}\n`
}

function evidenceSentence({ evidence, summary }: AttestationPayload): string {
  const { count, capped_by: cappedBy } = evidence
  switch (cappedBy) {
    case 'limit':
      return `The newest ${count} of ${summary.total} calls. The figures above are of all of them.`
    case 'retention':
      return `${count} of ${summary.total} calls: the rows of older calls are kept no longer. The figures above are of all of them.`
    case null:
      return count === 0 ? 'There were no calls.' : `All ${count} calls, the newest first.`
  }
}

const evidenceTable = ({ evidence }: AttestationPayload): string =>
  markdownTable(
    ['time', 'model', 'provider', 'residency', 'correlation id'],
    evidence.items.map(item => [item.timestamp, item.model, item.provider, item.residency, item.correlation_id]),
  )
