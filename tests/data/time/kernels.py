"""Kernels of one card through PyTorch, one kind and size at a time.

Each is captured several times into a CUDA graph and replayed, so that the host does not count.
usage: kernels.py OUT.jsonl DEADLINE_S"""
import json, random, sys, time
import torch
dev='cuda'
st=torch.cuda.Stream()
torch.cuda.set_stream(st)
DT={'f32':torch.float32,'bf16':torch.bfloat16,'f16':torch.float16}
def graph_us(fn, reps=10, budget_ms=40.0, warm=2):
    """Time of fn's kernels launched back to back without the host: the median of three replays of a CUDA graph of reps calls."""
    for _ in range(warm): fn()
    torch.cuda.synchronize()
    s=torch.cuda.Event(enable_timing=True); e=torch.cuda.Event(enable_timing=True)
    s.record(); fn(); e.record(); torch.cuda.synchronize()
    one=s.elapsed_time(e)
    reps=max(1,min(reps,int(budget_ms/max(one,1e-3)) or 1))
    g=torch.cuda.CUDAGraph()
    with torch.cuda.graph(g,stream=st):
        for _ in range(reps): r=fn()
    times=[]
    g.replay(); torch.cuda.synchronize()
    for _ in range(3):
        s.record(); g.replay(); e.record(); torch.cuda.synchronize()
        times.append(s.elapsed_time(e)/reps*1e3)
    del g
    return sorted(times)[1]
def event_us(fn, reps=5):
    """Time of fn between two events, the host included: for calls that a graph cannot capture. The median of reps."""
    for _ in range(2): fn()
    torch.cuda.synchronize()
    s=torch.cuda.Event(enable_timing=True); e=torch.cuda.Event(enable_timing=True)
    out=[]
    for _ in range(reps):
        s.record(); fn(); e.record(); torch.cuda.synchronize(); out.append(s.elapsed_time(e)*1e3)
    return sorted(out)[len(out)//2]
import torch.nn.functional as F
torch.backends.cuda.matmul.allow_tf32=False; torch.backends.cudnn.allow_tf32=False
out=open(sys.argv[1],'w'); t_end=time.time()+float(sys.argv[2])
A=torch.ops.aten
def put(cls,dtype,dims,us,**k):
    out.write(json.dumps(dict(c=cls,t=dtype,d=list(dims),us=round(us,3),**k))+'\n')
fails={}
def run(cls,dtype,dims,make,graph=True,**k):
    if time.time()>t_end: return
    try:
        fn=make()
        us=graph_us(fn,**k) if graph else event_us(fn)
        put(cls,dtype,dims,us)
    except Exception as ex:
        n=fails.get(cls,0); fails[cls]=n+1
        if n<3: print('FAIL',cls,dtype,dims,repr(ex)[:160],flush=True)
        torch.cuda.synchronize()
def R(*s,dt='bf16'): return torch.randn(*s,device=dev,dtype=torch.float32).to(DT[dt]) if dt!='f32' else torch.randn(*s,device=dev)
t0=time.time()
def section(name): print(name,round(time.time()-t0,1),flush=True); out.flush(); torch.cuda.empty_cache()
# --- gemm: layouts tn (x W^T), nn (g W), nt (g^T x)
big=torch.randn(1<<28,device=dev)
cache={}
def buf(n,dt,slot):
    """n elements of a buffer that all products share, so that none is allocated and filled anew."""
    k=(dt,slot)
    if k not in cache: cache[k]=torch.randn(1<<29,device=dev,dtype=torch.float32 if dt=='f32' else DT[dt])
    return cache[k][:n]
def gemm(dt,lay,m,n,k):
    def make():
        a=buf(m*k,dt,0); b=buf(n*k,dt,1)
        if lay=='tn': x=a.view(m,k); w=b.view(n,k).t()
        elif lay=='nn': x=a.view(m,k); w=b.view(k,n)
        else: x=a.view(k,m).t(); w=b.view(k,n)
        return lambda: torch.mm(x,w)
    run('gemm.'+lay,dt,(m,n,k),make,reps=8,budget_ms=12.0,warm=1)
P=[128,256,512,1024,2048,4096,8192,16384]
for dt in ('bf16','f32'):
    cap=1.2e12 if dt=='bf16' else 2.0e11
    for lay in ('tn','nn','nt'):
        for m in P:
            for n in P:
                for k in P:
                    if 2.*m*n*k<=cap and max(m*k,n*k)<=1<<29: gemm(dt,lay,m,n,k)
    section('gemm grid '+dt)
rnd=random.Random(1)
# A multiple of q, log-uniform from 2^a to 2^b.
def lu(a,b,q): return max(q,int(round(2**rnd.uniform(a,b)/q))*q)
for dt in ('bf16','f32','f16'):
    cap=2e12 if dt!='f32' else 2.5e11
    for lay in ('tn','nn','nt'):
        c=0
        while c<(60 if dt!='f16' else 25):
            m,n,k=lu(7,14.3,8),lu(7,14.3,64),lu(7,14.3,64)
            if 2.*m*n*k<=cap: gemm(dt,lay,m,n,k); c+=1
    # heads of vocabularies, as product, gradient of hidden states and of the head
    for v in (32064,49280,50257,50304,128256,151674,151936,257216):
        for h in (768,1536,2048,4096):
            for m in (512,2048,8192):
                if 2.*m*v*h<=cap*2 and v*max(m,h)<1<<29:
                    gemm(dt,'tn',m,v,h); gemm(dt,'nn',m,h,v); gemm(dt,'nt',v,h,m)
    section('gemm random, heads '+dt)
# layers of the catalogue's models: (outputs, inputs)
LM={'qwen2.5-0.5b':(896,4864,128),'qwen2.5-1.5b':(1536,8960,256),'qwen2.5-3b':(2048,11008,256),'qwen2.5-7b':(3584,18944,512),'llama3.2-1b':(2048,8192,512),'llama3.1-8b':(4096,14336,1024),'tinyllama':(2048,5632,256),'vicuna-7b':(4096,11008,4096),'vicuna-13b':(5120,13824,5120),'qwen3-4b':(2560,9728,1024),'gemma-2b':(2048,16384,256),'smol':(576,1536,192),'opt':(2560,10240,2560),
 'clip':(1024,4096,1024),'vitb':(768,3072,768),'siglip':(1152,4304,1152),'qwenvis':(1280,5120,1280),'qwen25vis':(1280,3420,1280),'eva':(1408,6144,1408),'gpt2l':(1280,5120,1280),'gpt2xl':(1600,6400,1600)}
pairs=set()
for h,i,kv in LM.values(): pairs|={(h,h),(i,h),(h,i),(kv,h),(3*h,h)}
M_=[256,512,784,1024,1154,1536,2048,3072,4096,6144,8192,12288]
for dt in ('bf16','f32'):
    cap=8e11 if dt=='bf16' else 1.0e11
    for n,k in sorted(pairs):
        for m in M_:
            if 2.*m*n*k<=cap:
                gemm(dt,'tn',m,n,k); gemm(dt,'nn',m,k,n); gemm(dt,'nt',n,k,m)
    section('layers '+dt)
cache.clear(); del big
# --- bmm as attention makes it
for dt in ('bf16','f32'):
    for b in (8,16,64,256):
        for s in (64,128,256,512,1024,2048):
            for d in (64,128,256):
                for lay in ('tn','nn','nt'):
                    m,n,k=((s,s,d) if lay=='tn' else (s,d,s))
                    if b*s*s>1<<28 : continue
                    def make():
                        x=R(b,m,k,dt=dt) if lay!='nt' else R(b,k,m,dt=dt).transpose(1,2)
                        w=R(b,n,k,dt=dt).transpose(1,2) if lay=='tn' else R(b,k,n,dt=dt)
                        return lambda: torch.bmm(x,w)
                    run('bmm.'+lay,dt,(b,m,n,k),make,reps=8,budget_ms=10.0,warm=1)
section('bmm')
for dt in ('bf16','f32'):
    for b in (16,64,192,512):
        for s in (50,77,197,257,577,1025,610,777,1058,1536):
            for d in (64,80,128):
                for lay in ('tn','nn','nt'):
                    m,n,k=((s,s,d) if lay=='tn' else (s,d,s))
                    if b*s*s>1<<28 : continue
                    def make():
                        x=R(b,m,k,dt=dt) if lay!='nt' else R(b,k,m,dt=dt).transpose(1,2)
                        w=R(b,n,k,dt=dt).transpose(1,2) if lay=='tn' else R(b,k,n,dt=dt)
                        return lambda: torch.bmm(x,w)
                    run('bmm.'+lay,dt,(b,m,n,k),make,reps=6,budget_ms=6.0,warm=1)
                m,n,k=d,s,s
                def make2():
                    x=R(b,k,m,dt=dt).transpose(1,2); w=R(b,k,n,dt=dt)
                    return lambda: torch.bmm(x,w)
                if b*s*s<=1<<27: run('bmm.nt',dt,(b,m,n,k),make2,reps=6,budget_ms=6.0,warm=1)
section('bmm odd')
# --- elementwise by elements
N=[1<<i for i in (8,12,14,16,18,20,21,22,23,24,25,26,27,28,29)]
for dt in ('bf16','f32'):
    for n in N:
        if n*4>(1<<31): continue
        x=R(n,dt=dt); y=R(n,dt=dt); p=torch.rand(n,device=dev).to(DT[dt])+0.5
        run('scale',dt,[n],lambda: (lambda: x*0.5))
        run('add',dt,[n],lambda: (lambda: x+y))
        run('mul',dt,[n],lambda: (lambda: x*y))
        run('neg',dt,[n],lambda: (lambda: -x))
        run('add_',dt,[n],lambda: (lambda: x.add_(y)))
        run('fill',dt,[n],lambda: (lambda: x.new_zeros(n)))
        run('tanh',dt,[n],lambda: (lambda: torch.tanh(x)))
        run('sigmoid',dt,[n],lambda: (lambda: torch.sigmoid(x)))
        run('pow2',dt,[n],lambda: (lambda: x.pow(2)))
        run('pow3',dt,[n],lambda: (lambda: torch.pow(x,3.0)))
        run('gelu',dt,[n],lambda: (lambda: F.gelu(x)))
        run('gelu_tanh',dt,[n],lambda: (lambda: F.gelu(x,approximate='tanh')))
        run('silu',dt,[n],lambda: (lambda: F.silu(x)))
        run('gelu_bw',dt,[n],lambda: (lambda: A.gelu_backward(x,y)))
        run('gelu_tanh_bw',dt,[n],lambda: (lambda: A.gelu_backward(x,y,approximate='tanh')))
        run('silu_bw',dt,[n],lambda: (lambda: A.silu_backward(x,y)))
        run('tanh_bw',dt,[n],lambda: (lambda: A.tanh_backward(x,y)))
        run('rsqrt',dt,[n],lambda: (lambda: torch.rsqrt(p)))
        run('cast',dt,[n],lambda: (lambda: x.to(torch.float32 if dt=='bf16' else torch.bfloat16)))
        run('clone',dt,[n],lambda: (lambda: x.clone()))
        run('dropout',dt,[n],lambda: (lambda: A.native_dropout(x,0.1,True)))
        run('norm',dt,[n],lambda: (lambda: x.norm(2)))
        x=y=p=None
section('elementwise')
# strided copies, rotary, cat, slices: [b,s,h,d]
for dt in ('bf16','f32'):
    for (b,s,h,d) in ((1,128,8,64),(1,256,16,64),(1,1024,12,64),(2,512,14,64),(1,1024,16,128),(2,1024,16,80),(4,1024,16,128),(2,2048,32,128),(8,2048,32,64),(8,2048,32,128),(16,4096,32,128)):
        if b*s*h*d*4>1<<31: continue
        x=R(b,s,h,d,dt=dt); q=x.transpose(1,2); cos=R(b,1,s,d,dt=dt); z=R(b,h,s,d,dt=dt)
        n=b*s*h*d
        run('transpose_copy',dt,[n,d],lambda: (lambda: q.contiguous()))
        run('rope_mul',dt,[n,d],lambda: (lambda: q*cos))
        run('half_neg',dt,[n,d],lambda: (lambda: -q[...,d//2:]))
        run('half_cat',dt,[n,d],lambda: (lambda: torch.cat((z[...,d//2:],z[...,:d//2]),-1)))
        run('slice_bw',dt,[n,d],lambda: (lambda: A.slice_backward(z[...,:d//2],[b,h,s,d],3,0,d//2,1)))
        run('add_layouts',dt,[n,d],lambda: (lambda: z+q))
        run('transpose_back',dt,[n,d],lambda: (lambda: z.transpose(1,2).contiguous()))
        x=q=z=cos=None
section('strided')
# rows x columns
for dt in ('bf16','f32'):
    for c in (64,128,512,1024,2048,4096,8192):
        for rows in (16,128,512,2048,8192,32768,131072):
            if rows*c>1<<28 or rows*c<1<<11: continue
            x=R(rows,c,dt=dt); g=R(rows,c,dt=dt); w=R(c,dt=dt); b=R(c,dt=dt); r1=R(rows,1,dt=dt)
            run('row_mul',dt,[rows,c],lambda: (lambda: x*r1))
            run('col_mul',dt,[rows,c],lambda: (lambda: x*w))
            run('mean_last',dt,[rows,c],lambda: (lambda: x.mean(-1,keepdim=True)))
            run('sum_first',dt,[rows,c],lambda: (lambda: x.sum(0)))
            o,mu,rs=A.native_layer_norm(x,[c],w,b,1e-5)
            run('layer_norm',dt,[rows,c],lambda: (lambda: A.native_layer_norm(x,[c],w,b,1e-5)))
            run('layer_norm_bw',dt,[rows,c],lambda: (lambda: A.native_layer_norm_backward(g,x,[c],mu,rs,w,b,[True,True,True])))
            run('layer_norm_bwx',dt,[rows,c],lambda: (lambda: A.native_layer_norm_backward(g,x,[c],mu,rs,w,b,[True,False,False])))
            x=g=None
    section('rows '+dt)
for dt in ('bf16','f32'):
    for c in (64,197,256,512,577,1024,2048,4096):
        for rows in (512,4096,32768,131072,524288):
            if rows*c>1<<28: continue
            x=R(rows,c,dt=dt); p=torch.softmax(x,-1); g=R(rows,c,dt=dt); bm=R(1,c,dt=dt)
            run('softmax',dt,[rows,c],lambda: (lambda: A._softmax(x,-1,False)))
            run('softmax_bw',dt,[rows,c],lambda: (lambda: A._softmax_backward_data(g,p,-1,x.dtype)))
            x=p=g=None
    for c in (1000,32064,50257,128256,151936,257216):
        for rows in (64,512,2048,8192):
            if rows*c>1<<30: continue
            x=R(rows,c,dt=dt); 
            run('log_softmax',dt,[rows,c],lambda: (lambda: A._log_softmax(x,-1,False)))
            lp=A._log_softmax(x,-1,False); y=torch.randint(0,c,(rows,),device=dev)
            run('log_softmax_bw',dt,[rows,c],lambda: (lambda: A._log_softmax_backward_data(x,lp,-1,x.dtype)))
            run('nll',dt,[rows,c],lambda: (lambda: A.nll_loss_forward(lp,y,None,1,-100)))
            l,tw=A.nll_loss_forward(lp,y,None,1,-100); gl=torch.ones((),device=dev,dtype=x.dtype)
            run('nll_bw',dt,[rows,c],lambda: (lambda: A.nll_loss_backward(gl,lp,y,None,1,-100,tw)))
            x=lp=None
    for c,v in ((768,50257),(896,151936),(2048,151936),(4096,32064)):
        for rows in (256,1024,4096,16384):
            w=R(v,c,dt=dt); y=torch.randint(0,v,(rows,),device=dev); g=R(rows,c,dt=dt)
            run('embedding',dt,[rows,c,v],lambda: (lambda: F.embedding(y,w)))
            run('embedding_bw',dt,[rows,c,v],lambda: (lambda: A.embedding_dense_backward(g,y,v,-1,False)),graph=False)
            mask=torch.zeros(rows,1,dtype=torch.bool,device=dev); mask[:rows//2]=True
            full=mask.expand(rows,c)
            run('masked_scatter',dt,[rows,c],lambda: (lambda: g.masked_scatter(full,w)))
            run('masked_fill',dt,[rows,c],lambda: (lambda: g.masked_fill(full,0)))
            run('index_rows',dt,[rows,c],lambda: (lambda: g[mask[:,0]]),graph=False)
            run('index_select',dt,[rows,c],lambda: (lambda: g[y%rows]))
            w=g=None
section('softmax, losses, embeddings')
# --- attention
def attn(cls,dt,b,h,hk,s,d,causal,mask,drop,ctx):
    def mk(bw):
        def make():
            q=R(b,s,h,d,dt=dt).transpose(1,2).requires_grad_(); k=R(b,s,hk,d,dt=dt).transpose(1,2).requires_grad_(); v=R(b,s,hk,d,dt=dt).transpose(1,2).requires_grad_()
            m=torch.ones(b,1,s,s,device=dev,dtype=torch.bool).tril() if mask else None
            f=lambda: F.scaled_dot_product_attention(q,k,v,attn_mask=m,is_causal=causal,dropout_p=drop,enable_gqa=h!=hk)
            if not bw: return f
            o=f(); g=R(b,s,h,d,dt=dt).transpose(1,2)
            return lambda: torch.autograd.grad(o,(q,k,v),g,retain_graph=True)
        return make
    from torch.nn.attention import sdpa_kernel
    with sdpa_kernel(ctx):
        dims=(b,h,hk,s,d,int(causal),int(mask),int(drop>0))
        run(cls,dt,dims,mk(False),reps=6,budget_ms=10.,warm=1); run(cls+'_bw',dt,dims,mk(True),reps=6,budget_ms=10.,warm=1)
from torch.nn.attention import SDPBackend as SB
for b,h,hk in ((1,16,16),(4,16,16),(16,16,16),(1,32,8),(2,32,8),(1,12,12),(8,12,12)):
    for s in (64,197,257,512,577,1024,2048,4096):
        for d in (64,72,80,128,256):
            if b*h*s*s>2<<30: continue
            if d in(72,256) and (b,h) not in ((1,16),(4,16),(16,16)): continue
            for causal in (0,1):
                attn('cudnn','bf16',b,h,hk,s,d,bool(causal),False,0.0,SB.CUDNN_ATTENTION)
            if s>=257 and d in(64,128): attn('cudnn','bf16',b,h,h,s,d,False,True,0.0,SB.CUDNN_ATTENTION)
            if d==64 and h==12: attn('cudnn','bf16',b,h,hk,s,d,True,False,0.1,SB.CUDNN_ATTENTION)
            if h==hk and d!=72 or d==128:
                if b*h*s*s<=1<<30:
                    attn('efficient','f32',b,h,h,s,d,False,False,0.0,SB.EFFICIENT_ATTENTION)
                    if s in(512,2048): attn('efficient','f32',b,h,h,s,d,True,False,0.0,SB.EFFICIENT_ATTENTION); attn('efficient','f32',b,h,h,s,d,False,True,0.0,SB.EFFICIENT_ATTENTION)
            if d in(64,128) and h==hk:
                for causal in(0,1): attn('flash','bf16',b,h,hk,s,d,bool(causal),False,0.0,SB.FLASH_ATTENTION)
            if d in(64,128) and h==hk and s in(512,2048,4096): attn('efficient','bf16',b,h,hk,s,d,True,False,0.0,SB.EFFICIENT_ATTENTION)
    section('attention %d %d'%(b,h))
# --- optimizers over lists
for dt in ('bf16','f32'):
    for cnt,n in ((32,1<<12),(128,1<<12),(128,1<<16),(128,1<<20),(64,1<<23),(48,1<<25)):
        if cnt*n*4>(1<<33): continue
        p=[R(n,dt=dt) for _ in range(cnt)]; g=[R(n,dt=dt) for _ in range(cnt)]; m=[R(n,dt=dt) for _ in range(cnt)]; v=[R(n,dt=dt).abs() for _ in range(cnt)]
        st=[torch.ones((),device=dev) for _ in range(cnt)]; sc=[0.5]*cnt; one=torch.tensor(0.5,device=dev)
        run('foreach_mul_',dt,[cnt,n],lambda: (lambda: torch._foreach_mul_(p,0.999)))
        run('foreach_mul_tensor',dt,[cnt,n],lambda: (lambda: torch._foreach_mul_(p,one)))
        run('foreach_lerp_',dt,[cnt,n],lambda: (lambda: torch._foreach_lerp_(m,g,0.1)))
        run('foreach_addcmul_',dt,[cnt,n],lambda: (lambda: torch._foreach_addcmul_(v,g,g,0.001)))
        run('foreach_sqrt',dt,[cnt,n],lambda: (lambda: torch._foreach_sqrt(v)))
        run('foreach_div_list',dt,[cnt,n],lambda: (lambda: torch._foreach_div_(v,sc)))
        run('foreach_add_',dt,[cnt,n],lambda: (lambda: torch._foreach_add_(v,1e-8)))
        run('foreach_addcdiv_',dt,[cnt,n],lambda: (lambda: torch._foreach_addcdiv_(p,m,v,sc)))
        run('foreach_add_list',dt,[cnt,n],lambda: (lambda: torch._foreach_add_(p,g,alpha=-1e-6)))
        run('foreach_norm',dt,[cnt,n],lambda: (lambda: torch._foreach_norm(g)))
        run('fused_adamw',dt,[cnt,n],lambda: (lambda: torch._fused_adamw_(p,g,m,v,[],st,lr=1e-6,beta1=.9,beta2=.999,weight_decay=.01,eps=1e-8,amsgrad=False,maximize=False)))
        p=g=m=v=None
section('optimizers')
for dt in ('bf16','f32'):
    for n,ch,im,ps,w in ((1,3,336,14,1024),(8,3,224,14,1024),(8,3,224,16,1024),(32,3,224,16,1024),(2,3,448,14,1152),(8,3,448,14,1152)):
        x=R(n,ch,im,im,dt=dt); k=R(w,ch,ps,ps,dt=dt); bi=R(w,dt=dt)
        run('conv',dt,(n,im,ps,w),lambda: (lambda: F.conv2d(x,k,bi,stride=ps)))
        g=F.conv2d(x,k,bi,stride=ps)
        run('conv_bw',dt,(n,im,ps,w),lambda: (lambda: A.convolution_backward(g,x,k,[w],[ps,ps],[0,0],[1,1],False,[0,0],1,[False,True,True])))
    x=R(576*4,1176,dt=dt)
section('conv')
print('fails',fails)
