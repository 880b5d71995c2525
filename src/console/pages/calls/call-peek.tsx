import { useQuery } from '@tanstack/react-query'
import { curlOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Button, Kbd } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { latencyText } from '../activity/latency.ts'
import { CallFacts } from './call-facts.tsx'
import { OutcomeWord } from './outcome.tsx'
import { outcomes, text, type WholeCall } from './text.ts'

interface CallPeekProps {
  readonly requestId: string
  /** The model, when the list has the call. */
  readonly title: string | undefined
  /** Null at the ends of the list. */
  readonly onNext: (() => void) | null
  readonly onPrevious: (() => void) | null
  readonly onClose: () => void
}

/** One request beside the list: how it ended, the routes that were tried, and all that is kept of it. */
export function CallPeek({ requestId, title = text.peekTitle, onNext, onPrevious, onClose }: CallPeekProps) {
  const path = { request_id: requestId }
  const call = useQuery(apiQuery('activityCall', { path }))
  return (
    <Peek
      title={call.data?.calls[0]?.model ?? title}
      subtitle={<code>{requestId}</code>}
      onClose={onClose}
      actions={
        <>
          <Button icon="up" onClick={() => onPrevious?.()} disabled={onPrevious === null}>
            {text.previous} <Kbd>k</Kbd>
          </Button>
          <Button icon="down" onClick={() => onNext?.()} disabled={onNext === null}>
            {text.next} <Kbd>j</Kbd>
          </Button>
        </>
      }
    >
      <Loaded query={call} skeleton={<Skeleton lines={8} height={24} />}>
        {({ calls }) => (
          <>
            {calls.map((one, index) => (
              <section key={one.id} className="stack-5">
                {calls.length > 1 && <h3>{text.call(index + 1, calls.length)}</h3>}
                <OneCall call={one} />
              </section>
            ))}
          </>
        )}
      </Loaded>
      <Fold title={text.curl} hint={text.curlHint}>
        <Code text={curlOf('activityCall', { path })} />
      </Fold>
      <Privacy requestId={requestId} />
    </Peek>
  )
}

function OneCall({ call }: { readonly call: WholeCall }) {
  return (
    <>
      <div className="call-end">
        <OutcomeWord outcome={call.outcome} />
        <p className="quiet">{outcomes[call.outcome].means}</p>
        {call.outcome === 'failed' && (
          <ul className="call-why" aria-label={text.whyLabel}>
            {call.routes.map(
              ({ provider, reason }, index) =>
                // biome-ignore lint/suspicious/noArrayIndexKey: attempts have no id, and their order never changes.
                reason !== null && <li key={index}>{text.why(provider, reason)}</li>,
            )}
          </ul>
        )}
      </div>
      <Routes routes={call.routes} />
      <CallFacts call={call} />
    </>
  )
}

/** What is kept of what was said, which is nothing unless the organisation has a retention window. */
function Privacy({ requestId }: { readonly requestId: string }) {
  const { org } = useMe()
  const isKept = org.data_retention_days > 0
  return (
    <div className="stack-3">
      <p className="call-note">
        <Icon name="shield" size={14} />
        {isKept ? text.kept(org.data_retention_days) : text.notKept}
      </p>
      {isKept && <Code text={text.keptCommand(org.id, requestId)} />}
    </div>
  )
}

type Route = WholeCall['routes'][number]

const isStatus = /^\d{3}$/

function Routes({ routes }: { readonly routes: readonly Route[] }) {
  return (
    <div>
      <h3 className="call-head">{text.routes}</h3>
      <ol className="call-routes" aria-label={text.routes}>
        {routes.map((route, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: attempts have no id, and their order never changes.
          <li key={index}>
            <OutcomeWord outcome={route.outcome === 'answered' ? 'ok' : route.outcome} />
            <span className="call-route">
              <span>{route.provider}</span>
              <span className="quiet">
                {[
                  route.model,
                  text.residencies[route.residency] ?? route.residency,
                  ...(route.byok ? [text.ownKey.toLowerCase()] : []),
                  ...(route.reason === null ? [] : [isStatus.test(route.reason) ? text.status(route.reason) : route.reason]),
                ].join(' · ')}
              </span>
            </span>
            <span className="tabular quiet nowrap">{latencyText(route.ms)}</span>
          </li>
        ))}
      </ol>
    </div>
  )
}
