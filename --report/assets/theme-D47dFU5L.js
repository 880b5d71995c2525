try {
  const theme = localStorage.getItem('brigade-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
