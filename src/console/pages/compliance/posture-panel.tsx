import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { addressOf, api, type ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { dayText } from '../../ui/format/dates.ts'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { mayVerify, signatureFault } from '../audit/verify/signature.ts'
import { Downloads } from './downloads.tsx'
import type { DocumentWindow } from './search.ts'
import { text } from './text.ts'

type Attestation = ReplyOf<'residencyAttestation'>

/** Where the calls of the organisation were served, from the signed attestation. */
export function PosturePanel({ window }: { readonly window: DocumentWindow }) {
  const attestation = useQuery(apiQuery('residencyAttestation', { query: { window } }))
  const period = attestation.data?.payload.period
  return (
    <Panel
      title={text.posture.title}
      note={period && text.posture.note(dayText(period.from), dayText(period.to))}
      actions={
        <Downloads
          name="attestation"
          json={addressOf('residencyAttestation', { query: { window } })}
          report={addressOf('residencyAttestation', { query: { window, format: 'report' } })}
        />
      }
    >
      <Loaded query={attestation}>
        {data =>
          data.payload.summary.total === 0 ? (
            <Empty icon="shield" title={text.posture.none}>
              {text.posture.noneHint}
            </Empty>
          ) : (
            <Posture key={data.signature} attestation={data} />
          )
        }
      </Loaded>
    </Panel>
  )
}

function Posture({ attestation }: { readonly attestation: Attestation }) {
  const { summary, evidence } = attestation.payload
  return (
    <div className="stack-5">
      <div className="stack-3">
        <p className="posture-share">
          <strong className="tabular">{summary.india_pct} %</strong> {text.posture.india}
        </p>
        <progress className="posture-bar" max={100} value={summary.india_pct} aria-label={text.posture.bar(summary.india_pct)} />
      </div>
      <Facts
        facts={[
          [text.posture.total, count(summary.total)],
          [text.posture.india, count(summary.india_requests)],
          [text.posture.global, count(summary.global_requests)],
          [text.posture.declared, count(summary.declared_requests)],
          [text.posture.unknown, count(summary.unknown_requests)],
        ]}
      />
      <p className="quiet">{text.posture.evidence(evidence.count, evidence.capped)}</p>
      <SignatureCheck attestation={attestation} />
    </div>
  )
}

function SignatureCheck({ attestation }: { readonly attestation: Attestation }) {
  const check = useMutation({
    mutationFn: async () => signatureFault(attestation.payload, attestation.ed25519, (await api('attestationKeys')).keys),
  })
  return (
    <div className="stack-3">
      {mayVerify() ? (
        <div className="compliance-line">
          <Button icon="shield" isBusy={check.isPending} onClick={() => check.mutate()}>
            {text.posture.check}
          </Button>
          <span role="status">
            {check.isSuccess && (
              <Status tone={check.data === null ? 'good' : 'bad'}>{check.data === null ? text.posture.genuine(attestation.ed25519.key_id) : check.data}</Status>
            )}
          </span>
        </div>
      ) : (
        <p>{text.posture.insecure}</p>
      )}
      {check.error && <InlineError error={apiErrorOf(check.error)} />}
      <p className="quiet">{text.posture.about}</p>
      <Code text={text.posture.command} />
    </div>
  )
}
