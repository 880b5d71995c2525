import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { apiQuery, queryClient } from '../api/queries.ts'
import { warmFormats } from '../ui/format/warm.ts'
import '../ui/styles.ts'
import { router } from './router.tsx'
import { isSignedInTab, SignedInTab } from './session/signed-in-tab.tsx'

const reloadedKey = 'brigade-reloaded'

/**
 * After an update of the gateway, a page that is open asks for files of the old version. The console then loads itself again, once, so that a file which is
 * missing for another reason does not make it reload for ever.
 */
window.addEventListener('vite:preloadError', event => {
  if (sessionStorage.getItem(reloadedKey) === location.href) return
  event.preventDefault()
  sessionStorage.setItem(reloadedKey, location.href)
  location.reload()
})

// The answer comes while the page's own file loads. Without this the shell would ask only when the page is there.
if (!isSignedInTab()) void queryClient.prefetchQuery(apiQuery('me'))

const root = document.getElementById('root')
if (root)
  createRoot(root).render(
    <StrictMode>
      {isSignedInTab() ? (
        <SignedInTab />
      ) : (
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      )}
    </StrictMode>,
  )

setTimeout(warmFormats)
