import { createRootRoute, Link } from '@tanstack/react-router'
import { ErrorPanel } from '../ui/layout/error-panel.tsx'
import { Page } from '../ui/layout/page.tsx'
import { Shell } from './shell/shell.tsx'

/** The parent of every page. A page that fails, or does not exist, leaves the shell as it is. */
export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NoSuchPage,
  errorComponent: ({ error, reset }) => <ErrorPanel error={error} onRetry={reset} />,
})

function NoSuchPage() {
  return (
    <Page title="There is no such page">
      <p className="quiet">
        The address may be from an older version. <Link to="/">Go to the overview</Link>.
      </p>
    </Page>
  )
}
