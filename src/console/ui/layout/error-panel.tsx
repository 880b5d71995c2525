import { Component, type ReactNode } from 'react'
import { type ApiError, apiErrorOf } from '../../api/api-error.ts'
import { Button } from '../forms/button.tsx'
import { Icon } from '../icon.tsx'

interface ErrorPanelProps {
  readonly error: unknown
  readonly onRetry?: () => void
}

function titleOf({ status }: ApiError): string {
  if (status === 403) return 'You may not see this'
  if (status === 404) return 'It is not here'
  return 'This could not be loaded'
}

function hintOf({ status, message }: ApiError): string {
  if (status === 403) return 'Owners and admins of the organisation see it. Ask one of them for the role.'
  if (status === 404) return 'It was removed, or it belongs to another organisation.'
  return message
}

/** What a panel shows instead of its content: the message of the gateway, the id of the request, and a way to try again. */
export function ErrorPanel({ error, onRetry }: ErrorPanelProps) {
  const failure = apiErrorOf(error)
  return (
    <div className="error-panel" role="alert">
      <Icon name="warn" size={20} />
      <p className="error-title">{titleOf(failure)}</p>
      <p className="quiet">{hintOf(failure)}</p>
      {failure.requestId && (
        <p className="error-request">
          Request <code>{failure.requestId}</code>
        </p>
      )}
      {onRetry && failure.status !== 403 && (
        <Button size="sm" icon="rotate" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** The error of an act, inside the form that began it. */
export function InlineError({ error }: { readonly error: ApiError }) {
  return (
    <div className="inline-error" role="alert">
      <Icon name="bad" />
      <div>
        <p>{error.message}</p>
        {error.requestId && error.status >= 500 && (
          <p className="error-request">
            Request <code>{error.requestId}</code>
          </p>
        )}
      </div>
    </div>
  )
}

/** Keeps a mistake of one panel inside this panel. The rest of the page works on. */
export class Boundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: null }

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error }
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children
    return <ErrorPanel error={this.state.error} onRetry={() => this.setState({ error: null })} />
  }
}
