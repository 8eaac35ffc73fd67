import re,glob,os,sys
own=['runs','durable','server','client','api']
files=glob.glob('src/**/*.ts',recursive=True)
users={}
for f in files:
    s=open(f).read()
    for m in re.finditer(r'(?:from|import\() ?"(\.[^"]+)"',s):
        t=os.path.normpath(os.path.join(os.path.dirname(f),m.group(1)))
        users.setdefault(t,set()).add(f)
def code(f):
    s=open(f).read(); s=re.sub(r'/\*.*?\*/','',s,flags=re.S)
    return sum(1 for l in s.split('\n') if l.strip() and not l.strip().startswith('//'))
for d in own:
    for f in sorted(glob.glob(f'src/{d}/**/*.ts',recursive=True)):
        u=users.get(f,set())
        print(code(f),f[4:], '<-', ' '.join(sorted(x[4:].replace(d+'/internal/','~').replace(d+'/','') for x in u)))
