import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../api/queries.ts'
import { Status } from '../../ui/data/status.tsx'
import { Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { findingWords, text } from './text.ts'

/** What the doctor found. The findings with a problem come first, with what to do about them. */
export function DoctorPanel() {
  const doctor = useQuery(apiQuery('operatorDoctor'))
  return (
    <Panel
      title={text.doctor}
      note={doctor.data ? <Time at={doctor.data.checked_at} /> : text.doctorNote}
      actions={
        <Button size="sm" icon="rotate" isBusy={doctor.isFetching} onClick={() => void doctor.refetch()}>
          {text.doctorAgain}
        </Button>
      }
    >
      <Loaded query={doctor} skeleton={<Skeleton lines={4} height={24} />}>
        {({ findings }) => {
          const problems = findings.filter(({ state }) => state !== 'ok')
          const fine = findings.filter(({ state }) => state === 'ok')
          return (
            <div className="stack-3">
              <Findings findings={problems} />
              {problems.length === 0 && <Status tone="good">{text.fine(fine.length)}</Status>}
              {fine.length > 0 && (
                <Fold title={text.allFindings} hint={String(fine.length)}>
                  <Findings findings={fine} />
                </Fold>
              )}
            </div>
          )
        }}
      </Loaded>
    </Panel>
  )
}

function Findings({ findings }: { readonly findings: readonly { what: string; state: 'ok' | 'warning' | 'wrong'; detail: string }[] }) {
  if (findings.length === 0) return null
  return (
    <ul className="health-findings">
      {findings.map(({ what, state, detail }, at) => (
        // Two findings may have the same words, such as two mistakes of one sum.
        // biome-ignore lint/suspicious/noArrayIndexKey: the list is replaced as a whole.
        <li key={`${at} ${what}`}>
          <Status tone={findingWords[state].tone}>{findingWords[state].name}</Status>
          <p>
            <strong>{what}</strong>
            <span className="health-detail">{detail}</span>
          </p>
        </li>
      ))}
    </ul>
  )
}
