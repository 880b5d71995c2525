import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { apiQuery } from '../../api/queries.ts'
import { Time } from '../../ui/data/time.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { text } from './text.ts'

const shownMax = 5

/** The calls that failed last. Each one leads to its page, with the routes that it tried. */
export function RecentErrors() {
  const events = useQuery(apiQuery('activityEvents', { query: { status: 'failed', limit: shownMax } }))
  return (
    <Panel
      title={text.recentErrors}
      actions={
        <Link to="/calls" search={{ outcome: 'failed' }}>
          {text.allErrors}
        </Link>
      }
    >
      <Loaded query={events}>
        {data =>
          data.events.length === 0 ? (
            <p className="quiet">{text.noErrors}</p>
          ) : (
            <ul className="recent-errors">
              {data.events.map(call => (
                <li key={call.id}>
                  <Link to="/calls" search={{ outcome: 'failed', call: call.request_id }}>
                    {call.model}
                  </Link>
                  <span className="quiet">{text.failedBy(call.status, call.agent_name ?? call.key_name)}</span>
                  <span className="quiet">
                    <Time at={call.at} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  )
}
